package export

import (
	"context"
	"errors"
	"os"

	"github.com/nfsbox/nfsbox/vfs"
)

var (
	_ vfs.FS     = (*View)(nil)
	_ vfs.Locker = (*View)(nil)
	_ vfs.ACLer  = (*View)(nil)
	_ vfs.Putter = (*View)(nil)
	_ vfs.Holder = (*View)(nil)
)

// held are the powers of a view that a file system of one state has.
type held struct{ locker, acler, putter, hostOpener bool }

// add makes those of fs part of s.
func (s *held) add(fs vfs.FS) {
	s.locker = s.locker || vfs.Has[vfs.Locker](fs)
	s.acler = s.acler || vfs.Has[vfs.ACLer](fs)
	s.putter = s.putter || vfs.Has[vfs.Putter](fs)
	s.hostOpener = s.hostOpener || vfs.Has[vfs.HostOpener](fs)
}

// Holds implements vfs.Holder. A view passes on the powers of what is exported now:
// it has one if at least one of the file systems has it. Used with a handle of
// another, which lacks it, it is vfs.ErrNotSupp (OpenHost: vfs.ErrNoDev). After the
// next Replace the answer may be another one.
func (v *View) Holds(power any) bool {
	now := &v.t.state.Load().held
	switch power.(type) {
	case *vfs.Locker:
		return now.locker
	case *vfs.ACLer:
		return now.acler
	case *vfs.Putter:
		return now.putter
	case *vfs.HostOpener:
		return now.hostOpener
	}
	return true
}

// Locker is the power to lock in whatever is exported, now or later, and whatever
// of it can be locked: the program's own, whom no rule concerns.
func (t *Table) Locker() vfs.Locker { return t.view(origin{local: true}, nil) }

// ACL implements vfs.ACLer.
func (v *View) ACL(ctx context.Context, h vfs.Handle) (vfs.ACL, error) {
	r, err := v.ref(ctx, &h)
	if err != nil {
		return vfs.ACL{}, err
	}
	defer r.leave()
	power, ok := vfs.As[vfs.ACLer](r.fs)
	if !ok {
		return vfs.ACL{}, vfs.ErrNotSupp
	}
	return power.ACL(ctx, r.h)
}

// SetACL implements vfs.ACLer.
func (v *View) SetACL(ctx context.Context, h vfs.Handle, acl vfs.ACL) error {
	r, err := v.change(ctx, &h)
	if err != nil {
		return err
	}
	defer r.leave()
	power, ok := vfs.As[vfs.ACLer](r.fs)
	if !ok {
		return vfs.ErrNotSupp
	}
	err = power.SetACL(ctx, r.h, acl)
	r.rejudged(&r.h, rights, err)
	if err != nil {
		return err
	}
	return r.stable(ctx, r.h)
}

// Put implements vfs.Putter.
func (v *View) Put(ctx context.Context, dir vfs.Handle, name string, mode uint32, data []byte) (vfs.Handle, vfs.Attr, error) {
	r, err := v.change(ctx, &dir)
	if err != nil {
		return vfs.Handle{}, vfs.Attr{}, err
	}
	defer r.leave()
	power, ok := vfs.As[vfs.Putter](r.fs)
	if !ok {
		return vfs.Handle{}, vfs.Attr{}, vfs.ErrNotSupp
	}
	naming := r.giving(&r.h)
	h, attr, err := power.Put(ctx, r.h, name, mode, data)
	naming.end()
	if err == nil {
		err = r.stable(ctx, h, r.h)
	}
	if err != nil {
		return vfs.Handle{}, attr, err
	}
	h, err = r.seal(&h)
	return h, attr, err
}

// Lock implements vfs.Locker. On a read-only export an exclusive lock is
// vfs.ErrROFS, as it is with nfsd: those are for writers.
func (v *View) Lock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	return v.locker(ctx, &h, func(r *ref, power vfs.Locker) error {
		if r.readOnly && l.Exclusive {
			return vfs.ErrROFS
		}
		return power.Lock(ctx, r.h, l)
	})
}

// Unlock implements vfs.Locker.
func (v *View) Unlock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	return v.locker(ctx, &h, func(r *ref, power vfs.Locker) error { return power.Unlock(ctx, r.h, l) })
}

// TestLock implements vfs.Locker.
func (v *View) TestLock(ctx context.Context, h vfs.Handle, l *vfs.Lock) (holder vfs.Lock, free bool, err error) {
	err = v.locker(ctx, &h, func(r *ref, power vfs.Locker) (err error) {
		holder, free, err = power.TestLock(ctx, r.h, l)
		return err
	})
	return holder, free, err
}

func (v *View) locker(ctx context.Context, sealed *vfs.Handle, do func(*ref, vfs.Locker) error) error {
	r, err := v.ref(ctx, sealed)
	if err != nil {
		return err
	}
	defer r.leave()
	power, ok := vfs.As[vfs.Locker](r.fs)
	if !ok {
		return vfs.ErrNotSupp
	}
	return do(&r, power)
}

// ReleaseLocks implements vfs.Locker, in the file systems of all exports: also
// of those that this caller may not use any more, whose locks are to go as well.
func (v *View) ReleaseLocks(ctx context.Context, whom func(*vfs.Owner) bool) error {
	var errs []error
	for _, u := range v.t.enterAll(v.shard) {
		if power, ok := vfs.As[vfs.Locker](u.fs); ok {
			errs = append(errs, power.ReleaseLocks(ctx, whom))
		}
		u.leave(v.t, v.shard)
	}
	return errors.Join(errs...)
}

// enterAll counts a user in every file system that is exported or still in use.
func (t *Table) enterAll(shard uint32) []*users {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*users, 0, len(t.users))
	for _, u := range t.users {
		u.enter(shard)
		all = append(all, u)
	}
	return all
}

// Unwrap gives the powers of the file below that Open has granted, one behind
// another, and nothing else of it.
func (f *File) Unwrap() any {
	var next any
	if power, ok := vfs.As[vfs.HostFiler](f.below); ok {
		next = &hostFile{f: f, below: power}
	}
	if power, ok := vfs.As[vfs.HoleSeeker](f.below); ok {
		next = &holeFile{f: f, below: power, next: next}
	}
	return next
}

// holeFile is the power vfs.HoleSeeker of a file.
type holeFile struct {
	f     *File
	below vfs.HoleSeeker
	next  any
}

func (h *holeFile) Unwrap() any { return h.next }

func (h *holeFile) NextData(ctx context.Context, off uint64) (uint64, error) {
	if err := h.f.may(ctx, false); err != nil {
		return 0, err
	}
	return h.below.NextData(ctx, off)
}

func (h *holeFile) NextHole(ctx context.Context, off uint64) (uint64, error) {
	if err := h.f.may(ctx, false); err != nil {
		return 0, err
	}
	return h.below.NextHole(ctx, off)
}

// hostFile is the power vfs.HostFiler of a file.
type hostFile struct {
	f     *File
	below vfs.HostFiler
}

func (h *hostFile) HostFile() (*os.File, func(), bool) {
	if h.f.may(context.Background(), h.f.writes) != nil {
		return nil, nil, false
	}
	return h.below.HostFile()
}
