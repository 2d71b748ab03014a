package writeback

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/vfs"
)

// Options say how an FS behaves. The zero value is a good one.
type Options struct {
	// MaxDirty is the bound of dirty bytes; 0 is [DefaultMaxDirty].
	MaxDirty int64
	// Patience is how long a WRITE or COMMIT is made again that fails for a
	// reason that may pass; 0 is [DefaultPatience]. What the FS below does before
	// it fails counts, but not the time in which the call waits for its turn (package
	// pace) and others are answered. Commit, Sync and Close wait no longer than their
	// contexts.
	Patience time.Duration
	// Pool lends the buffers; nil is a pool of its own.
	Pool *bufpool.Pool
	// Verifier is what Written carries. A server of this FS
	// passes a random one per start.
	Verifier vfs.Verifier
}

// FS is one caller's view. It is a vfs.FS and a [vfs.Closer], and has the powers of
// the FS below but for a few: see [FS.Holds].
type FS struct {
	inner vfs.FS // below
	asked vfs.FS // what answers questions about names and attributes: see [vfs.Asked]
	s     *shared
}

var (
	_ vfs.FS        = (*FS)(nil)
	_ vfs.Closer    = (*FS)(nil)
	_ vfs.Unwrapper = (*FS)(nil)
	_ vfs.Keeper    = (*FS)(nil)
)

// New returns inner with write-behind, as the view that inner is.
func New(inner vfs.FS, opt Options) *FS {
	if opt.MaxDirty <= 0 {
		opt.MaxDirty = DefaultMaxDirty
	}
	if opt.Patience <= 0 {
		opt.Patience = DefaultPatience
	}
	if opt.Pool == nil {
		opt.Pool = new(bufpool.Pool)
	}
	return over(inner, newShared(opt))
}

func over(inner vfs.FS, s *shared) *FS { return &FS{inner: inner, asked: vfs.Asked(inner), s: s} }

// Anew implements vfs.Keeper. Nothing is kept here but dirty bytes.
func (f *FS) Anew() vfs.FS {
	return &FS{inner: f.inner, asked: vfs.Anew(f.inner), s: f.s}
}

// Unwrap returns the FS below.
func (f *FS) Unwrap() any { return f.inner }

// Dirty is the memory, in bytes, of what is not yet known to be stable.
func (f *FS) Dirty() int64 { return f.s.dirty.Load() }

// As returns the view of another caller, with the same dirty bytes.
func (f *FS) As(c *vfs.Caller) vfs.FS { return over(f.inner.As(c), f.s) }

// Root passes through.
func (f *FS) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) { return f.asked.Root(ctx) }

// Info passes through.
func (f *FS) Info(ctx context.Context, h vfs.Handle, want vfs.InfoMask) (vfs.Info, error) {
	return f.inner.Info(ctx, h, want)
}

// GetAttr sends what is dirty first, without committing it.
func (f *FS) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	n := f.s.node(h)
	if n == nil {
		return f.asked.GetAttr(ctx, h, want)
	}
	if err := n.drain(ctx, 0, math.MaxUint64); err != nil {
		return vfs.Attr{}, err
	}
	since := f.s.stableCount.Load()
	attr, err := f.asked.GetAttr(ctx, h, want)
	if err != nil || n.grow(since, &attr) {
		return attr, err
	}
	// A server that restarted may have answered without bytes that were sent again, and became
	// stable, before its answer came. With everything stable first it knows them all.
	if err := n.commit(ctx); err != nil {
		return vfs.Attr{}, err
	}
	if attr, err = f.asked.GetAttr(ctx, h, want); err == nil {
		n.grow(math.MaxUint64, &attr)
	}
	return attr, err
}

// clean reports whether nothing is dirty, and nothing was when stableCount was since.
func (s *shared) clean(since uint64) bool {
	return s.dirty.Load() == 0 && s.stableCount.Load() == since
}

// growSince makes the size in attr, if there is one, include the dirty bytes of h. attr is of a
// reply to a call that was made when shared.stableCount was since: see [node.grow]. It does the
// same for an object whose files have been closed meanwhile.
func (f *FS) growSince(since uint64, h vfs.Handle, attr *vfs.Attr) {
	s := f.s
	if s.clean(since) {
		return
	}
	s.mu.Lock()
	n, behind := s.nodes[h], s.closed.behind(h, since)
	s.mu.Unlock()
	if n != nil {
		n.grow(since, attr)
	}
	if behind {
		attr.Valid &^= vfs.MaskSize
	}
}

// SetAttr commits what is dirty first. So no WRITE undoes the times and mode that it sets, or is
// refused for them, also not one that is made again after a restart of the server. What is dirty
// behind the size that it sets is cut. If bytes could not be made stable, the files tell, and not
// SetAttr.
func (f *FS) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (wcc vfs.WCC, err error) {
	n := f.s.node(h)
	if n == nil {
		return f.inner.SetAttr(ctx, h, set, guard)
	}
	if set.Valid&^vfs.MaskSize != 0 {
		if err := n.commit(ctx); err != nil && ctx.Err() != nil {
			return wcc, err
		}
	}
	since := f.s.stableCount.Load()
	err = n.fence(ctx, 0, math.MaxUint64, func() (uint64, uint64, error) {
		wcc, err = f.inner.SetAttr(ctx, h, set, guard)
		if err != nil || set.Valid&vfs.MaskSize == 0 {
			return 0, 0, err
		}
		return set.Size, math.MaxUint64, nil
	})
	n.grow(since, &wcc.After)
	return wcc, err
}

// Access passes through.
func (f *FS) Access(ctx context.Context, h vfs.Handle, want vfs.Access) (vfs.Access, vfs.Attr, error) {
	since := f.s.stableCount.Load()
	got, attr, err := f.asked.Access(ctx, h, want)
	f.growSince(since, h, &attr)
	return got, attr, err
}

// Lookup passes through.
func (f *FS) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, attr, dirAttr vfs.Attr, err error) {
	since := f.s.stableCount.Load()
	h, attr, dirAttr, err = f.asked.Lookup(ctx, dir, name)
	f.growSince(since, h, &attr)
	return h, attr, dirAttr, err
}

// Readlink passes through.
func (f *FS) Readlink(ctx context.Context, h vfs.Handle) (string, vfs.Attr, error) {
	return f.asked.Readlink(ctx, h)
}

// Create passes through, and cuts what is dirty in an existing file.
func (f *FS) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (h vfs.Handle, attr vfs.Attr, wcc vfs.WCC, err error) {
	since := f.s.stableCount.Load()
	if how.Type != vfs.TypeReg || how.Set.Valid&vfs.MaskSize == 0 {
		h, attr, wcc, err = f.inner.Create(ctx, dir, name, how)
		f.growSince(since, h, &attr)
		return h, attr, wcc, err
	}
	err = f.resizing(ctx, vfs.At{Dir: dir, Name: name}, how.Set.Size, func() (vfs.Handle, error) {
		h, attr, wcc, err = f.inner.Create(ctx, dir, name, how)
		return h, err
	})
	f.growSince(since, h, &attr)
	return h, attr, wcc, err
}

// resizing runs call, which sets the size of what at names, if that exists, and returns the
// handle. Dirty bytes behind size are cut. Another client may have renamed something meanwhile, so
// that call has changed another object: then the one that at named before keeps its dirty bytes.
func (f *FS) resizing(ctx context.Context, at vfs.At, size uint64, call func() (vfs.Handle, error)) error {
	h := at.H
	if at.Name != "" && f.Dirty() > 0 {
		// What there is to be cut is found by handle. If the look-up fails, so
		// will the call, or make a file.
		h, _, _, _ = vfs.Anew(f.inner).Lookup(ctx, at.Dir, at.Name)
	}
	n := f.s.node(h)
	if n == nil {
		_, err := call()
		return err
	}
	return n.fence(ctx, 0, math.MaxUint64, func() (uint64, uint64, error) {
		if got, err := call(); err != nil || got != h {
			return 0, 0, err
		}
		return size, math.MaxUint64, nil
	})
}

// Link passes through.
func (f *FS) Link(ctx context.Context, h, dir vfs.Handle, name string) (vfs.Attr, vfs.WCC, error) {
	since := f.s.stableCount.Load()
	attr, wcc, err := f.inner.Link(ctx, h, dir, name)
	f.growSince(since, h, &attr)
	return attr, wcc, err
}

// Remove passes through.
func (f *FS) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	return f.inner.Remove(ctx, dir, name, isDir)
}

// Rename passes through.
func (f *FS) Rename(ctx context.Context, fromDir vfs.Handle, fromName string, toDir vfs.Handle, toName string) (from, to vfs.WCC, err error) {
	return f.inner.Rename(ctx, fromDir, fromName, toDir, toName)
}

// ReadDir passes through; sizes include what is dirty if handles were asked for.
func (f *FS) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	all := f.asked.ReadDir(ctx, dir, from, want, maxBytes)
	if want&vfs.MaskSize == 0 || want&vfs.MaskHandle == 0 {
		return all
	}
	return func(yield func(*vfs.Entry, error) bool) {
		since := f.s.stableCount.Load()
		for e, err := range all {
			if e != nil && !f.s.clean(since) { // asked here, the handle is not copied for each entry
				f.growSince(since, e.Handle, &e.Attr)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Open opens a file. It costs a round trip more once, for the limits.
func (f *FS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (file vfs.File, opened vfs.Opened, err error) {
	since := f.s.stableCount.Load()
	var inner vfs.File
	open := func() (vfs.Handle, error) {
		inner, opened, err = f.inner.Open(ctx, at, how)
		return opened.H, err
	}
	var size uint64
	resizes := how.Trunc
	if how.Create != nil && how.Create.Set.Valid&vfs.MaskSize != 0 && !resizes {
		size, resizes = how.Create.Set.Size, true
	}
	if resizes {
		err = f.resizing(ctx, at, size, open)
	} else {
		_, err = open()
	}
	if err != nil {
		return nil, opened, err
	}
	limits, err := f.limits(ctx, opened.H)
	if err != nil {
		_ = inner.Close(context.WithoutCancel(ctx)) // the first error is the one to tell
		return nil, opened, err
	}
	file = f.open(ctx, inner, &opened, how.Access, limits)
	f.growSince(since, opened.H, &opened.Attr)
	return file, opened, nil
}

// limits returns the limits of the FS below. They are asked for once: if another
// file system below has smaller ones, its READs and WRITEs come back short, and
// their rest is asked for, or sent, again.
func (f *FS) limits(ctx context.Context, h vfs.Handle) (*vfs.Info, error) {
	f.s.mu.Lock()
	limits := f.s.limits
	f.s.mu.Unlock()
	if limits != nil {
		return limits, nil
	}
	info, err := f.inner.Info(ctx, h, vfs.InfoLimits)
	if err != nil {
		return nil, err
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.s.limits = &info
	return &info, nil
}

// Close ends what goes on in the background: timers and tries. Files that are still open are of no
// further use. Their bytes that are not stable are given up, and the error says how many. Then the
// FS below is closed.
func (f *FS) Close() error {
	over := fmt.Errorf("the file system is closed: %w", vfs.ErrInval)
	f.s.mu.Lock()
	f.s.over = over
	f.s.mu.Unlock()
	var lost int
	for _, n := range f.s.all() {
		lost += n.abandon(over)
	}
	err := vfs.CloseFS(f.inner)
	if lost > 0 {
		err = errors.Join(fmt.Errorf("closed with %d bytes that may not be stable: %w", lost, vfs.ErrIO), err)
	}
	return err
}
