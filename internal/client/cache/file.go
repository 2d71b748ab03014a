package cache

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/cache/store"
	"github.com/nfsbox/nfsbox/vfs"
)

// file is an open file.
type file struct {
	v      *FS // that opened it
	h      vfs.Handle
	label  string // its name or path, if its opener has told
	n      *node
	inner  vfs.File
	near   vfs.Near // nil if the file below is not one
	access vfs.Share

	lease  atomic.Pointer[lease] // nil: the server has to be asked
	pass   atomic.Int64          // until then reads go straight through
	next   atomic.Uint64         // where the last read ended
	closed atomic.Bool

	turn    chan struct{} // has a token while somebody validates; guards what follows
	seen    vfs.Attr      // that came with the open
	seenAt  int64
	seenGen uint64
	touched map[int]bool // granules of which a part was read; guarded by n.mu
}

// lease is the right to read an entry for a while.
type lease struct {
	e       *store.Entry
	version store.Version
	gen     uint64 // node.gen; another one ends it
	since   int64  // when the version was first seen here
	over    atomic.Bool
	timer   *time.Timer // sets over: so a hit does not ask for the time
}

var (
	_ vfs.File      = (*file)(nil)
	_ vfs.Near      = (*file)(nil)
	_ vfs.Unwrapper = (*file)(nil)
	_ vfs.Holder    = (*file)(nil)
)

// open makes a file, and its node if it is the first one there. seenAt is the time before the attributes of
// opened were asked for.
func (f *FS) open(inner vfs.File, label string, opened *vfs.Opened, access vfs.Share, seenAt int64) *file {
	o := &file{v: f, h: opened.H, label: label, inner: inner, access: access, turn: make(chan struct{}, 1)}
	o.near, _ = vfs.As[vfs.Near](inner)
	o.n = f.s.enter(opened.H)
	if access&vfs.ShareWrite != 0 {
		o.n.addWriters(1)
	} else {
		o.seen, o.seenAt, o.seenGen = opened.Attr, seenAt, o.n.gen.Load()
	}
	return o
}

// Unwrap returns the file below.
func (f *file) Unwrap() any { return f.inner }

// Holds implements vfs.Holder. It ends powers by which bytes are written, or read anew, past the cache.
func (f *file) Holds(power any) bool {
	switch power.(type) {
	case *vfs.Appender, *vfs.Dropper:
		return false
	}
	return true
}

// current returns the lease, if it is still good.
func (f *file) current() *lease {
	l := f.lease.Load()
	if l == nil || l.over.Load() || l.gen != f.n.gen.Load() || !l.e.Alive() {
		return nil
	}
	return l
}

// Near reports whether all of the file is on this host.
func (f *file) Near() bool {
	if f.near != nil && f.near.Near() {
		return true
	}
	l := f.current()
	return l != nil && l.e.Complete() && !f.v.s.past(l)
}

// validate asks the server what it has, and whether the caller may read it. It returns nil if reads are to
// go straight through. An error is that of ctx.
func (f *file) validate(ctx context.Context) (*lease, error) {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l := f.current(); l != nil {
		return l, nil // somebody else has asked
	}
	s := f.v.s
	now := s.now()
	if now < f.pass.Load() || f.closed.Load() || f.access&vfs.ShareRead == 0 || !f.n.quiet() {
		return nil, nil
	}
	gen := f.n.gen.Load()
	l := f.newLease(ctx, gen, now)
	if l == nil {
		f.keep(nil)
		f.pass.Store(now + int64(minAge))
		return nil, ctx.Err()
	}
	f.keep(l)
	return f.current(), nil
}

// newLease validates the entry of the file.
func (f *file) newLease(ctx context.Context, gen uint64, now int64) *lease {
	a, ok := f.ask(ctx, gen)
	if !ok {
		return nil
	}
	l := &lease{version: versionOf(&a), gen: gen}
	since, until := f.n.seen(&l.version, now)
	l.since = since
	key := store.Key{Server: f.v.s.o.Server, Mark: f.v.s.o.Mark, FSID: a.FSID, Handle: f.h}
	if l.e = f.v.s.store.Open(&key, &l.version, f.label); l.e == nil {
		return nil
	}
	l.timer = time.AfterFunc(time.Duration(until-f.v.s.now()), func() { l.over.Store(true) })
	return l
}

// end gives the entry back.
func (l *lease) end() {
	l.timer.Stop()
	l.e.Release()
}

// keep replaces the lease.
func (f *file) keep(l *lease) {
	if old := f.lease.Swap(l); old != nil {
		old.end()
	}
	if l != nil && f.closed.Load() && f.lease.CompareAndSwap(l, nil) {
		l.end()
	}
}

// WriteAt writes below. What is cached of the file is not used any more.
func (f *file) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	f.n.beginChange()
	defer f.n.endChange()
	return f.inner.WriteAt(ctx, p, off, how, w)
}

// Commit passes through: the bytes are those that were written.
func (f *file) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	return f.inner.Commit(ctx, off, n, w)
}

// Truncate cuts the file below. What is cached of it is not used any more.
func (f *file) Truncate(ctx context.Context, size uint64) (vfs.WCC, error) {
	f.n.beginChange()
	defer f.n.endChange()
	return f.inner.Truncate(ctx, size)
}

// Close gives the entry back, and closes the file below.
func (f *file) Close(ctx context.Context) error {
	if f.closed.Swap(true) {
		return vfs.ErrInval
	}
	f.keep(nil)
	if f.access&vfs.ShareWrite != 0 {
		f.n.addWriters(-1)
	}
	f.v.s.leave(f.h, f.n)
	return f.inner.Close(ctx)
}
