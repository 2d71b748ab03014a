package readahead

import (
	"context"
	"math"
	"slices"

	"github.com/nfsbox/nfsbox/vfs"
)

// file is an open file. Its node's mutex guards what changes.
type file struct {
	s      *shared
	view   *FS // that opened it
	h      vfs.Handle
	n      *node
	inner  vfs.File
	near   vfs.Near // nil if the file below is not one
	access vfs.Share

	ctx     context.Context // of READs ahead; nil before the first read
	cancel  context.CancelFunc
	stopped bool // nothing is read ahead any more
	closed  bool
	ahead   ahead
}

var (
	_ vfs.File      = (*file)(nil)
	_ vfs.Unwrapper = (*file)(nil)
	_ vfs.Holder    = (*file)(nil)
)

// open makes a file, and its node if it is the first one there.
func (v *FS) open(inner vfs.File, opened *vfs.Opened, access vfs.Share) *file {
	f := &file{s: v.s, view: v, h: opened.H, inner: inner, access: access}
	f.near, _ = vfs.As[vfs.Near](inner)
	f.ahead = ahead{need: firstRun, end: math.MaxUint64, split: climb{level: firstSplit}}
	f.n, f.stopped = v.s.enter(opened.H)
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	f.learn(&opened.Attr, 0, 0, false)
	f.n.files = append(f.n.files, f)
	return f
}

func (s *shared) enter(h vfs.Handle) (n *node, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = s.nodes[h]
	if n == nil {
		n = new(node)
		n.cond.L = &n.mu
		s.nodes[h] = n
	}
	n.opens++
	return n, s.over
}

func (s *shared) leave(f *file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.n.opens--; f.n.opens == 0 {
		delete(s.nodes, f.h)
	}
}

func (f *file) Unwrap() any { return f.inner }

// Holds implements vfs.Holder. It ends powers by which bytes are written, or read anew, past what
// was read ahead. A file with a descriptor (vfs.HostFiler) is near, and nothing is read ahead of
// it.
func (f *file) Holds(power any) bool {
	switch power.(type) {
	case *vfs.Appender, *vfs.Dropper:
		return false
	}
	return true
}

// WriteAt writes below. What was read ahead there is dropped.
func (f *file) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	to := off + uint64(len(p))
	if to < off {
		to = math.MaxUint64
	}
	f.n.beginChange(off, to)
	defer f.n.endChange(off, to)
	return f.inner.WriteAt(ctx, p, off, how, w)
}

func (f *file) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	return f.inner.Commit(ctx, off, n, w)
}

// Truncate cuts the file below. What was read ahead of it is dropped.
func (f *file) Truncate(ctx context.Context, size uint64) (vfs.WCC, error) {
	f.n.beginChange(0, math.MaxUint64)
	defer f.n.endChange(0, math.MaxUint64)
	return f.inner.Truncate(ctx, size)
}

// Close ends the READs ahead, waits for them, and closes the file below.
func (f *file) Close(ctx context.Context) error {
	n := f.n
	n.mu.Lock()
	if f.closed {
		n.mu.Unlock()
		return vfs.ErrInval
	}
	f.closed = true
	f.stop()
	for f.ahead.reading > 0 {
		n.cond.Wait()
	}
	n.files = slices.DeleteFunc(n.files, func(g *file) bool { return g == f })
	n.mu.Unlock()
	f.s.leave(f)
	return f.inner.Close(ctx)
}

// stop ends all streams, for good, and what is in flight. n.mu is held.
func (f *file) stop() {
	f.stopped = true
	if f.cancel != nil {
		f.cancel()
	}
	for i := range f.ahead.streams {
		f.retire(&f.ahead.streams[i])
	}
}
