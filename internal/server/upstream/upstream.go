package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// nobody is the program itself, to the other server.
var nobody = vfs.Caller{UID: 65534, GID: 65534}

// Options say which server, and how its export is served. Dial and Probe are required.
type Options struct {
	Name string // of the other server's export, for messages: a URL
	// Dial connects. The FS closes what it returns (vfs.CloseFS). Its calls end in bounded time.
	Dial  func(context.Context) (vfs.FS, error)
	Probe *Probe
	FSID  uint64 // is mixed into the numbers of file systems
	// MaxHandle is the size of the largest handle that can be handed out, in bytes, and Longer what to do about
	// a server with longer ones. 0: no bound.
	MaxHandle int
	Longer    string
	Keep      bool         // keep files open between READs
	Log       *slog.Logger // nil: nothing is logged
}

// FS is one caller's view. It has the powers of a [vfs.Locker], a [vfs.ACLer] and a [vfs.Closer]: where the other server has no
// locks or lists, their methods say so.
type FS struct {
	s      *shared
	caller *vfs.Caller
	view   atomic.Pointer[view]
}

var (
	_ vfs.FS     = (*FS)(nil)
	_ vfs.Locker = (*FS)(nil)
	_ vfs.ACLer  = (*FS)(nil)
	_ vfs.Closer = (*FS)(nil)
)

// view is the caller's view by one connection.
type view struct {
	of *connection
	fs vfs.FS
}

// connection is what Dial has returned, and Connect has found fit.
type connection struct{ fs vfs.FS }

// shared is what the views have in common.
type shared struct {
	o    Options
	conn atomic.Pointer[connection] // nil: there was none yet
	why  atomic.Pointer[error]      // of the last try
	kept kept

	life context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup // Persist

	mu     sync.Mutex // guards closed, and is held while conn is set
	closed bool
}

// New returns an FS that is not connected.
func New(o Options) *FS {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &shared{o: o}
	s.kept.init()
	s.life, s.stop = context.WithCancel(context.Background())
	return &FS{s: s, caller: &nobody}
}

// As returns the view of another caller.
func (f *FS) As(c *vfs.Caller) vfs.FS {
	if c == nil {
		c = &nobody
	}
	return &FS{s: f.s, caller: c}
}

// NotYetError says that the other server has not been reached yet. It is vfs.ErrBusy.
type NotYetError struct {
	Name string
	Err  error // why; nil: it is being tried
}

// Error implements error.
func (e *NotYetError) Error() string {
	if e.Err == nil {
		return e.Name + " has not been reached yet"
	}
	return fmt.Sprintf("%s has not been reached yet: %v", e.Name, e.Err)
}

// Unwrap returns the status alone: what the other server, or the name service, has said is not the answer to a call.
func (e *NotYetError) Unwrap() error { return vfs.ErrBusy }

// RefusedError says that the other server's export cannot be served, and that it is of no use to wait.
type RefusedError struct {
	Name string
	Why  string
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Name + ": " + e.Why }

// below is the caller's view of the file system below.
func (f *FS) below() (vfs.FS, error) {
	c := f.s.conn.Load()
	if c == nil {
		var why error
		if p := f.s.why.Load(); p != nil {
			why = *p
		}
		return nil, &NotYetError{f.s.o.Name, why}
	}
	if v := f.view.Load(); v != nil && v.of == c {
		return v.fs, nil
	}
	v := &view{c, c.fs.As(f.caller)}
	f.view.Store(v)
	return v.fs, nil
}

// Connected reports whether the other server has been reached.
func (f *FS) Connected() bool { return f.s.conn.Load() != nil }

// Connect tries once to reach the other server, and checks what it has. It is for one goroutine at a time, before Persist.
func (f *FS) Connect(ctx context.Context) error {
	err := f.s.connect(ctx)
	f.s.why.Store(&err)
	return err
}

func (s *shared) connect(ctx context.Context) error {
	fs, err := s.o.Dial(ctx)
	if err != nil {
		return err
	}
	if err := s.check(ctx, fs); err != nil {
		return errors.Join(err, vfs.CloseFS(fs))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.Join(vfs.ErrInval, vfs.CloseFS(fs))
	}
	s.conn.Store(&connection{fs})
	return nil
}

// check looks whether the export can be served.
func (s *shared) check(ctx context.Context, fs vfs.FS) error {
	root, a, err := fs.Root(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", s.o.Name, err)
	}
	if a.Has(vfs.MaskType) && a.Type != vfs.TypeDir {
		return &RefusedError{s.o.Name, fmt.Sprintf("it is a %v, and a directory is wanted", a.Type)}
	}
	longest := root.Len()
	n := 0
	// Nobody may list it, perhaps: then what is met later decides.
	for e, err := range fs.ReadDir(ctx, root, vfs.Pos{}, vfs.MaskHandle|vfs.MaskV3, 0) {
		if n++; err != nil || n > probeEntries {
			break
		}
		longest = max(longest, e.Handle.Len())
	}
	if s.o.MaxHandle > 0 && longest > s.o.MaxHandle {
		return &RefusedError{s.o.Name, fmt.Sprintf("its file handles have %d bytes, and there is room for %d: %s", longest, s.o.MaxHandle, s.o.Longer)}
	}
	name := s.o.Probe.name()
	_, _, _, err = fs.Lookup(ctx, root, name)
	if s.o.Probe.back(name) {
		return &RefusedError{s.o.Name, "it leads back to this server, which would ask itself: name the server that has the files"}
	}
	if errors.Is(err, vfs.ErrBusy) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", s.o.Name, err) // it may be on its way around
	}
	return nil
}

// Persist goes on to connect, until that is done or the FS is closed. The log says why not, each reason once.
func (f *FS) Persist() {
	s := f.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.wg.Go(s.persist)
	}
}

func (s *shared) persist() {
	said := ""
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-s.life.Done():
			t.Stop()
			return
		}
		ctx, cancel := context.WithTimeout(s.life, tryTime)
		err := s.connect(ctx)
		cancel()
		s.why.Store(&err)
		if err == nil {
			s.o.Log.Info("the upstream answers: its files are served", slog.String("from", s.o.Name))
			return
		}
		if s.life.Err() == nil && err.Error() != said {
			said = err.Error()
			s.o.Log.Warn("the upstream cannot be served yet: clients are told to come again", slog.String("from", s.o.Name), slog.Any("error", err))
		}
	}
}

// Close ends Persist, and closes what is below.
func (f *FS) Close() error {
	s := f.s
	s.mu.Lock()
	s.closed = true
	c := s.conn.Load()
	s.mu.Unlock()
	s.stop()
	s.wg.Wait()
	s.kept.close()
	if c == nil {
		return nil
	}
	return vfs.CloseFS(c.fs)
}
