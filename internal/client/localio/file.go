package localio

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

// file is an open file: one of the FS below, and the ways to bypass it. Powers of the file
// below are found through Unwrap.
type file struct {
	fs     *FS
	below  vfs.File
	n      *node
	access vfs.Share
	closed atomic.Bool
	read   way
	write  way
}

// trustedFile is a file whose descriptor other packages may use.
type trustedFile struct{ *file }

var (
	_ vfs.File      = (*file)(nil)
	_ vfs.Near      = (*file)(nil)
	_ vfs.Unwrapper = (*file)(nil)
	_ vfs.HostFiler = (*trustedFile)(nil)
)

// Unwrap returns the file below.
func (f *file) Unwrap() any { return f.below }

func (f *file) way(access vfs.Share) *way {
	if access == vfs.ShareRead {
		return &f.read
	}
	return &f.write
}

// use returns an error if f was not opened for that access.
func (f *file) use(ctx context.Context, access vfs.Share) error {
	switch {
	case f.closed.Load():
		return vfs.ErrInval
	case f.access&access != access:
		return vfs.ErrAccess
	}
	return ctx.Err()
}

// small reports whether a read or write of n bytes at off may be the only use of f: the first one, of a
// file that is not large. Over the network it costs one call; a descriptor would cost one as well, and
// more on both sides. A file that is read on, or written in large pieces, gets a descriptor.
func (f *file) small(access vfs.Share, n int, off uint64) bool {
	if f.fs.s.o.Mode == Require || f.fs.s.o.Eager || f.way(access).used.Load() {
		return false
	}
	if access == vfs.ShareRead {
		return f.n.size.Load() <= smallFile
	}
	return off == 0 && n <= smallFile
}

// grant returns a descriptor, of which the caller becomes a user, or nil if there is none. It
// asks for a missing one unless the use is small.
func (f *file) grant(ctx context.Context, access vfs.Share, small bool) *grant {
	w := f.way(access)
	if g := w.grant.Load(); g != nil {
		if g.enter() {
			return g
		}
		f.detach(g, w)
	}
	return f.obtain(ctx, access, small)
}

// detach makes f stop using g, which is not valid any more.
func (f *file) detach(g *grant, w *way) {
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	if w.grant.CompareAndSwap(g, nil) {
		g.release()
	}
}

// remote is called before data goes over the network. cause is why an existing descriptor does
// not help, or nil.
func (f *file) remote(ctx context.Context, access vfs.Share, cause error) error {
	s := f.fs.s
	if s.o.Mode != Require {
		s.count.fallbacks.Add(1)
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if cause != nil {
		return &notLocal{why: "what the server has opened cannot be used: " + cause.Error()}
	}
	if r := f.way(access).refusal.Load(); r != nil && r.holds(s.link.Load()) {
		if r.status != 0 {
			return &notLocal{r.why, r.status}
		}
		return &notLocal{why: r.why}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link.Load() == nil {
		return &notLocal{why: s.why}
	}
	return &notLocal{why: fmt.Sprintf("the server has not opened the file in %v, or has taken it back each time; "+
		"try again when it has less to do, or allow the network (localio=auto)", s.wait)}
}

// Near reports whether reads are local, or likely to be.
func (f *file) Near() bool {
	if g := f.read.grant.Load(); g != nil && g.valid() {
		return true
	}
	l := f.fs.s.link.Load()
	return l != nil && f.access&vfs.ShareRead != 0 && !f.read.refusal.Load().holds(l)
}

// Truncate goes below. Callers order it among writes, unless it was cut off: see SetAttr.
func (f *file) Truncate(ctx context.Context, size uint64) (vfs.WCC, error) {
	wcc, err := f.below.Truncate(ctx, size)
	switch {
	case err == nil:
		f.n.size.Store(size)
	case undecided(err):
		f.fs.s.unanswered(f.n.h)
	}
	return wcc, err
}

// Close closes below. Descriptors are kept for a while, for the next open of
// the file.
func (f *file) Close(ctx context.Context) error {
	if !f.closed.CompareAndSwap(false, true) {
		return vfs.ErrInval
	}
	n := f.n
	n.mu.Lock()
	for _, w := range [...]*way{&f.read, &f.write} {
		if g := w.grant.Swap(nil); g != nil {
			g.release()
		}
	}
	if n.files--; n.files == 0 {
		clear(n.refusals)
	}
	n.mu.Unlock()
	err := f.below.Close(ctx)
	n.s.drop(n)
	return err
}

// HostFile implements vfs.HostFiler.
func (f *trustedFile) HostFile() (*os.File, func(), bool) {
	if f.use(context.Background(), vfs.ShareRead) != nil {
		return nil, nil, false
	}
	g := f.grant(context.Background(), vfs.ShareRead, false)
	if g == nil {
		return nil, nil, false
	}
	var given atomic.Bool
	return g.file(), func() {
		if !given.Swap(true) {
			g.leave()
		}
	}, true
}
