package readahead

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/vfs"
)

// Options say how much an FS reads ahead. The zero value is a good one.
type Options struct {
	// File bounds the bytes that are read ahead in an open file, and Total those in all
	// files; 0 is [DefaultFile] and [DefaultTotal]. If either is negative nothing is read
	// ahead, and large reads are divided all the same.
	File, Total int64
	// Pool lends the buffers; nil is a pool of its own.
	Pool *bufpool.Pool
}

// FS is one caller's view. What it has no method for passes through. It is a
// [vfs.Closer], and has the powers of the FS below but for one: see [FS.Holds].
type FS struct {
	vfs.FS // below
	s      *shared
}

var (
	_ vfs.Closer    = (*FS)(nil)
	_ vfs.Unwrapper = (*FS)(nil)
	_ vfs.Passer    = (*FS)(nil)
	_ vfs.Holder    = (*FS)(nil)
)

// New returns inner with reading ahead, as the view that inner is.
func New(inner vfs.FS, opt Options) *FS {
	if opt.File < 0 || opt.Total < 0 {
		opt.File = -1
	}
	opt.File = cmp.Or(opt.File, DefaultFile)
	opt.Total = cmp.Or(opt.Total, DefaultTotal)
	if opt.Pool == nil {
		opt.Pool = new(bufpool.Pool)
	}
	return &FS{FS: inner, s: &shared{opt: opt, nodes: make(map[vfs.Handle]*node)}}
}

// Unwrap returns the FS below.
func (f *FS) Unwrap() any { return f.FS }

// Asked implements vfs.Passer.
func (f *FS) Asked() vfs.FS { return vfs.Asked(f.FS) }

// Holds implements vfs.Holder. The power to lock is passed on, by methods here. One power of the FS
// below ends: what another process writes by a descriptor does not pass through here.
func (f *FS) Holds(power any) bool {
	switch power.(type) {
	case *vfs.Locker:
		return vfs.Has[vfs.Locker](f.FS)
	case *vfs.HostOpener:
		return false
	}
	return true
}

// As returns the view of another caller.
func (f *FS) As(c *vfs.Caller) vfs.FS { return &FS{FS: f.FS.As(c), s: f.s} }

// Info passes through. How much a READ carries is learned from what comes back.
func (f *FS) Info(ctx context.Context, h vfs.Handle, want vfs.InfoMask) (vfs.Info, error) {
	info, err := f.FS.Info(ctx, h, want)
	if err == nil && want&vfs.InfoLimits != 0 {
		f.s.learnLimits(&info)
	}
	return info, err
}

// SetAttr passes through, and drops what was read ahead of h.
func (f *FS) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	if n := f.s.node(h); n != nil {
		n.beginChange(0, math.MaxUint64)
		defer n.endChange(0, math.MaxUint64)
	} else {
		defer f.s.resized(h) // another call may open it meanwhile
	}
	return f.FS.SetAttr(ctx, h, set, guard)
}

// Create passes through, and drops what was read ahead of an existing file whose size
// it sets.
func (f *FS) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	h, attr, wcc, err := f.FS.Create(ctx, dir, name, how)
	if err == nil && how.Type == vfs.TypeReg && how.Set.Valid&vfs.MaskSize != 0 {
		f.s.resized(h)
	}
	return h, attr, wcc, err
}

// Open opens a file. What was read ahead of a file whose size this sets is dropped.
func (f *FS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	inner, opened, err := f.FS.Open(ctx, at, how)
	if err != nil {
		return nil, opened, err
	}
	if how.Trunc || how.Create != nil && how.Create.Set.Valid&vfs.MaskSize != 0 {
		f.s.resized(opened.H)
	}
	return f.open(inner, &opened, how.Access), opened, nil
}

// Close ends all reading ahead, and closes the FS below. Files that are still open read
// straight through from then on.
func (f *FS) Close() error {
	f.s.mu.Lock()
	f.s.over = true
	f.s.mu.Unlock()
	for _, n := range f.s.all() {
		n.abandon()
	}
	return vfs.CloseFS(f.FS)
}
