package cache

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/client/cache/store"
	"github.com/nfsbox/nfsbox/vfs"
)

// Options say what is cached.
type Options struct {
	Server string // that has the files: a host and port, the same in every run
	Mark   string // keeps apart what is cached for the same files: fsc=MARK
	Caller vfs.Caller
	// Now is the clock that is compared with files' times; nil is time.Now.
	Now func() time.Time
}

// FS is one caller's view. It is a [vfs.Closer], and has the powers of the FS below but for one:
// see [FS.Holds].
type FS struct {
	vfs.FS // below
	s      *shared
	who    string // the caller, as rights are remembered
}

var (
	_ vfs.Closer    = (*FS)(nil)
	_ vfs.Unwrapper = (*FS)(nil)
	_ vfs.Passer    = (*FS)(nil)
	_ vfs.Holder    = (*FS)(nil)
	_ vfs.Locker    = (*FS)(nil)
)

// shared is what the views have in common.
type shared struct {
	o       Options
	store   *store.Store
	base    time.Time
	fetches chan struct{} // a place for each fetch in flight
	pool    bufpool.Pool
	attrs   sync.Pool    // of *vfs.Attr
	settle  atomic.Int64 // nanoseconds; 0: not known yet

	contests [kinds]contest

	mu     sync.Mutex
	nodes  map[vfs.Handle]*node // of open files
	grants map[grantKey]grant
}

// New returns inner, the view of o.Caller, with files read from st. Close closes st.
func New(inner vfs.FS, st *store.Store, o Options) *FS {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &shared{
		o: o, store: st, base: time.Now(), fetches: make(chan struct{}, maxFetches),
		nodes: make(map[vfs.Handle]*node), grants: make(map[grantKey]grant),
	}
	s.contests[small].quick, s.contests[large].quick = float64(quickSmall), float64(quickLarge)
	st.Watch(s.tookDisk)
	return &FS{FS: inner, who: o.Caller.Key(), s: s}
}

// now is the time since the FS was made.
func (s *shared) now() int64 { return int64(time.Since(s.base)) }

// Unwrap returns the FS below.
func (f *FS) Unwrap() any { return f.FS }

// Asked implements vfs.Passer.
func (f *FS) Asked() vfs.FS { return vfs.Asked(f.FS) }

// Holds implements vfs.Holder. What another process writes by a descriptor does not pass through here.
func (f *FS) Holds(power any) bool {
	switch power.(type) {
	case *vfs.HostOpener:
		return false
	case *vfs.Locker:
		return vfs.Has[vfs.Locker](f.FS)
	}
	return true
}

// As returns the view of another caller.
func (f *FS) As(c *vfs.Caller) vfs.FS {
	who := f.s.o.Caller
	if c != nil {
		who = *c
	}
	return &FS{FS: f.FS.As(c), s: f.s, who: who.Key()}
}

// SetAttr passes through, and ends the use of what is cached of h.
func (f *FS) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	if n := f.s.node(h); n != nil {
		n.beginChange()
		defer n.endChange()
	} else {
		defer f.s.changed(h) // another call may open it meanwhile
	}
	return f.FS.SetAttr(ctx, h, set, guard)
}

// Create passes through. If it may have set the size of an existing file, the use of what is cached of
// that ends.
func (f *FS) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	h, attr, wcc, err := f.FS.Create(ctx, dir, name, how)
	if err == nil && how.Type == vfs.TypeReg && how.Set.Valid&vfs.MaskSize != 0 {
		f.s.changed(h)
	}
	return h, attr, wcc, err
}

// Open opens a file below. What is cached of it is looked at with the first read.
func (f *FS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	seen := f.s.now()
	inner, opened, err := f.FS.Open(ctx, at, how)
	if err != nil {
		return nil, opened, err
	}
	if how.Trunc || how.Create != nil && how.Create.Set.Valid&vfs.MaskSize != 0 {
		f.s.changed(opened.H)
	}
	return f.open(inner, cmp.Or(at.Label, at.Name), &opened, how.Access, seen), opened, nil
}

// Lock takes the lock below. Its holder wants to read what others wrote before it had the lock, so the
// server is asked again before anything is read from the cache.
func (f *FS) Lock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	below, ok := vfs.As[vfs.Locker](f.FS)
	if !ok {
		return vfs.ErrNotSupp
	}
	err := below.Lock(ctx, h, l)
	if err == nil {
		f.s.changed(h)
	}
	return err
}

// Unlock passes through.
func (f *FS) Unlock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	if below, ok := vfs.As[vfs.Locker](f.FS); ok {
		return below.Unlock(ctx, h, l)
	}
	return vfs.ErrNotSupp
}

// TestLock passes through.
func (f *FS) TestLock(ctx context.Context, h vfs.Handle, l *vfs.Lock) (vfs.Lock, bool, error) {
	if below, ok := vfs.As[vfs.Locker](f.FS); ok {
		return below.TestLock(ctx, h, l)
	}
	return vfs.Lock{}, false, vfs.ErrNotSupp
}

// ReleaseLocks passes through.
func (f *FS) ReleaseLocks(ctx context.Context, whom func(*vfs.Owner) bool) error {
	if below, ok := vfs.As[vfs.Locker](f.FS); ok {
		return below.ReleaseLocks(ctx, whom)
	}
	return vfs.ErrNotSupp
}

// Stats returns the figures of the store.
func (f *FS) Stats() store.Stats { return f.s.store.Stats() }

// Close closes the store, and then the FS below. Files that are still open read straight through.
func (f *FS) Close() error { return errors.Join(f.s.store.Close(), vfs.CloseFS(f.FS)) }
