package outage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// Options say how long the server is waited for.
type Options struct {
	Answer  time.Duration // most that a call takes; 0: DefaultAnswer
	Offline time.Duration // how long what it told is told on while it is silent; 0: not at all
	Caller  vfs.Caller    // of the view that New is given
	// Changed is told that the server is silent, and that it answers again, if it is not nil. It is called by any
	// goroutine, and must not call the FS.
	Changed func(silent bool)
}

// FS is one caller's view. It has the powers of a [vfs.Locker] and a [vfs.ACLer], if the FS below has them, and is a
// [vfs.Closer].
type FS struct {
	below vfs.FS
	s     *shared
	who   string // the caller, as rights and changes are known by it
}

var (
	_ vfs.FS        = (*FS)(nil)
	_ vfs.Locker    = (*FS)(nil)
	_ vfs.ACLer     = (*FS)(nil)
	_ vfs.Closer    = (*FS)(nil)
	_ vfs.Unwrapper = (*FS)(nil)
	_ vfs.Holder    = (*FS)(nil)
)

// shared is what the views have in common.
type shared struct {
	o    Options
	base vfs.FS
	born time.Time

	heard  atomic.Int64 // when the server answered last, by now; before all else: -1
	silent atomic.Bool

	life context.Context // of changes, and of questions to a silent server
	stop context.CancelFunc

	mu     sync.Mutex
	closed bool           // guarded by mu
	wg     sync.WaitGroup // added to under mu, before closed

	memory  memory
	changes changes
}

// New returns inner, the view of o.Caller, in bounded time.
func New(inner vfs.FS, o Options) *FS {
	if o.Answer <= 0 {
		o.Answer = DefaultAnswer
	}
	s := &shared{o: o, base: inner, born: time.Now()}
	s.heard.Store(-1)
	s.life, s.stop = context.WithCancel(context.Background())
	return &FS{below: inner, s: s, who: o.Caller.Key()}
}

// As returns the view of another caller.
func (f *FS) As(c *vfs.Caller) vfs.FS {
	who := f.s.o.Caller
	if c != nil {
		who = *c
	}
	return &FS{below: f.below.As(c), s: f.s, who: who.Key()}
}

// Unwrap returns the FS below.
func (f *FS) Unwrap() any { return f.below }

// Holds implements vfs.Holder. Powers by which calls would go past the bound are denied.
func (f *FS) Holds(power any) bool {
	switch power.(type) {
	case *vfs.HostOpener, *vfs.Putter, *vfs.Xattrer, *vfs.Walker:
		return false
	case *vfs.Locker:
		return vfs.Has[vfs.Locker](f.below)
	case *vfs.ACLer:
		return vfs.Has[vfs.ACLer](f.below)
	}
	return true
}

// Silent reports whether the server does not answer.
func (f *FS) Silent() bool { return f.s.silent.Load() }

// Close gives up changes that have no answer yet, and closes the FS below.
func (f *FS) Close() error {
	f.s.mu.Lock()
	f.s.closed = true
	f.s.mu.Unlock()
	f.s.stop()
	f.s.wg.Wait()
	return vfs.CloseFS(f.below)
}

// BusyError says that the server has not answered in time, or does not answer these days. It is vfs.ErrBusy.
type BusyError struct{ Err error }

// Error implements error.
func (e *BusyError) Error() string { return "the server does not answer: " + e.Err.Error() }

// Unwrap returns the status. The cause is for people alone: a client that comes again needs no other reason.
func (e *BusyError) Unwrap() error { return vfs.ErrBusy }

var (
	errSilent = &BusyError{errors.New("it has been silent, and is asked every second")}
	errFull   = &BusyError{fmt.Errorf("%d changes wait for it", maxOrphans)}
	errClosed = fmt.Errorf("the file system is closed: %w", vfs.ErrInval)
)

// unsent reports whether err says that the server was not asked at all.
func unsent(err error) bool { return errors.Is(err, errSilent) || errors.Is(err, errFull) }

// now is the time since the FS was made.
func (s *shared) now() int64 { return int64(time.Since(s.born)) }

// spawn runs f, unless the FS is closed. Close waits for it.
func (s *shared) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.wg.Go(f)
	}
	return !s.closed
}

// ask makes a call that may be made again, in bounded time.
func (s *shared) ask(ctx context.Context, call func(context.Context) error) error {
	if s.silent.Load() {
		return errSilent
	}
	began := s.now()
	bounded, cancel := context.WithTimeout(ctx, s.o.Answer)
	defer cancel()
	return s.judge(ctx, began, call(bounded))
}

// judge is the error for the maker of a call that began then and ended with err.
func (s *shared) judge(ctx context.Context, began int64, err error) error {
	switch {
	case err != nil && ctx.Err() != nil:
		return err
	case !unanswered(err):
		s.heard.Store(s.now())
		return err
	}
	s.unheard(began)
	return &BusyError{err}
}

// unanswered reports whether err says that no answer came.
func unanswered(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, vfs.ErrNoAnswer)
}

// unheard takes the server for silent if it has answered nothing since then.
func (s *shared) unheard(since int64) {
	if s.heard.Load() > since || !s.silent.CompareAndSwap(false, true) {
		return
	}
	s.tell(true)
	s.spawn(s.wait)
}

// wait asks a silent server until it answers.
func (s *shared) wait() {
	for {
		pause := time.NewTimer(askEvery)
		select {
		case <-pause.C:
		case <-s.life.Done():
			pause.Stop()
			return
		}
		ctx, cancel := context.WithTimeout(s.life, s.o.Answer)
		_, _, err := s.base.Root(ctx)
		cancel()
		if s.life.Err() == nil && !unanswered(err) {
			s.heard.Store(s.now())
			s.silent.Store(false)
			s.tell(false)
			return
		}
	}
}

func (s *shared) tell(silent bool) {
	if s.o.Changed != nil {
		s.o.Changed(silent)
	}
}
