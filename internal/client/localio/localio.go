package localio

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// below is the FS below, of which everything is taken that is not here.
type below = vfs.FS

// FS is one caller's view. It is a vfs.FS and a [vfs.Closer].
type FS struct {
	below
	s   *shared
	who claim
}

var (
	_ vfs.FS        = (*FS)(nil)
	_ vfs.Closer    = (*FS)(nil)
	_ vfs.Unwrapper = (*FS)(nil)
)

// New returns fs, the view of o.Caller, with files that are read and written without the
// network while fs's server, which p asks, is on this host. The first handshake begins at once,
// in the background.
func New(fs vfs.FS, p Prober, o Options) *FS {
	o.fill()
	s := &shared{
		o: o, p: p, gate: newGate(), wait: openWait,
		hint: make(chan struct{}, 1), met: make(chan struct{}),
		nodes: make(map[vfs.Handle]*node), open: make(map[*grant]struct{}),
	}
	if o.Mode == Require {
		s.wait = requireWait
	}
	s.verf.Store(s.random())
	s.ctx, s.cancel = context.WithCancel(context.Background())
	switch {
	case !supported:
		s.remote("LOCALIO is for Linux, and this is " + runtime.GOOS)
	case o.Mode == Off:
		s.remote("it is switched off")
	default:
		s.work.Go(s.run)
	}
	return &FS{below: fs, s: s, who: claimOf(&o.Caller)}
}

// Ready waits for the result of the first handshake. It returns nil if files are local, otherwise an
// ErrNotLocal with the reason. Only in mode Require does that prevent their use.
func (f *FS) Ready(ctx context.Context) error {
	select {
	case <-f.s.met:
	case <-ctx.Done():
		return ctx.Err()
	}
	if f.s.link.Load() != nil {
		return nil
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return &notLocal{why: f.s.why}
}

// As returns the view of another caller.
func (f *FS) As(c *vfs.Caller) vfs.FS {
	who := &f.s.o.Caller
	if c != nil {
		who = c
	}
	return &FS{below: f.below.As(c), s: f.s, who: claimOf(who)}
}

// Unwrap returns the FS below.
func (f *FS) Unwrap() any { return f.below }

// Open opens below. A descriptor is asked for at the file's first use.
func (f *FS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	inner, opened, err := f.below.Open(ctx, at, how)
	if err != nil {
		if how.Trunc && at.Name == "" && undecided(err) {
			f.s.unanswered(at.H)
		}
		return nil, opened, err
	}
	n := f.s.enter(opened.H)
	n.learn(&opened.Attr)
	n.mu.Lock()
	n.files++
	n.mu.Unlock()
	file := &file{fs: f, below: inner, n: n, access: how.Access}
	if f.s.o.Mode == Trusted {
		return &trustedFile{file}, opened, nil
	}
	return file, opened, nil
}

// SetAttr passes through. A change of size that was cut off, here or in Open, must not take
// effect after a later write, like a write that was cut off.
func (f *FS) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	wcc, err := f.below.SetAttr(ctx, h, set, guard)
	switch {
	case set.Valid&vfs.MaskSize == 0:
	case err == nil:
		if n := f.s.find(h); n != nil {
			n.size.Store(set.Size)
			f.s.drop(n)
		}
	case undecided(err):
		f.s.unanswered(h)
	}
	return wcc, err
}

// Close ends the session. It syncs what was written by descriptors and not committed, closes
// them, and then the FS below. Files that are still open cannot be used any more.
func (f *FS) Close() error {
	s := f.s
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return vfs.ErrInval
	}
	s.over = true
	if s.sweeper != nil {
		s.sweeper.Stop()
	}
	all := make([]*grant, 0, len(s.open))
	for g := range s.open {
		all = append(all, g)
	}
	s.mu.Unlock()
	for _, g := range all {
		g.retire() // while the session can still give it back
	}
	s.cancel() // ends the session, too
	s.work.Wait()
	s.mu.Lock()
	err := s.unsynced
	s.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("closed with bytes that may not be stable: %w", err)
	}
	return errors.Join(err, vfs.CloseFS(f.below))
}
