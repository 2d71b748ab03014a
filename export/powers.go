package export

import (
	"context"
	"errors"
	"os"

	"github.com/nfsbox/nfsbox/vfs"
)

var (
	_ vfs.FS      = (*View)(nil)
	_ vfs.Locker  = (*View)(nil)
	_ vfs.ACLer   = (*View)(nil)
	_ vfs.Xattrer = (*View)(nil)
	_ vfs.Putter  = (*View)(nil)
	_ vfs.Walker  = (*View)(nil)
	_ vfs.Holder  = (*View)(nil)
)

// held are the powers that at least one file system of a state has.
type held struct{ locker, acler, xattrer, putter, hostOpener, walker bool }

// add adds the powers of fs.
func (s *held) add(fs vfs.FS) {
	s.locker = s.locker || vfs.Has[vfs.Locker](fs)
	s.acler = s.acler || vfs.Has[vfs.ACLer](fs)
	s.xattrer = s.xattrer || vfs.Has[vfs.Xattrer](fs)
	s.putter = s.putter || vfs.Has[vfs.Putter](fs)
	s.hostOpener = s.hostOpener || vfs.Has[vfs.HostOpener](fs)
	s.walker = s.walker || vfs.Has[vfs.Walker](fs)
}

// Holds implements vfs.Holder. A view has a power if at least one of the file systems
// that are exported now has it. Used with a handle of a file system that lacks it, the
// power is vfs.ErrNotSupp (OpenHost: vfs.ErrNoDev). The next Replace may change the
// answer. Only a view that is Unstable is a vfs.Putter: see Put.
func (v *View) Holds(power any) bool {
	now := &v.t.state.Load().held
	switch power.(type) {
	case *vfs.Locker:
		return now.locker
	case *vfs.ACLer:
		return now.acler
	case *vfs.Xattrer:
		return now.xattrer
	case *vfs.Putter:
		return now.putter && v.unstable
	case *vfs.HostOpener:
		return now.hostOpener
	case *vfs.Walker:
		return now.walker
	}
	return true
}

// Walk implements vfs.Walker. What it finds is in the export of dir, as with Lookup.
func (v *View) Walk(ctx context.Context, dir vfs.Handle, names []string) (n int, at vfs.Resolved) {
	r, err := v.ref(ctx, &dir)
	if err != nil {
		return 0, at
	}
	defer r.leave()
	power, ok := vfs.As[vfs.Walker](r.fs)
	if !ok {
		return 0, at
	}
	if n, at = power.Walk(ctx, r.h, names); n == 0 {
		return 0, vfs.Resolved{}
	}
	if at.Handle, err = r.seal(&at.Handle); err == nil {
		at.Dir, err = r.seal(&at.Dir)
	}
	if err != nil {
		return 0, vfs.Resolved{}
	}
	return n, at
}

// Locker returns the program's own power to lock, which no rule concerns. It serves
// whatever is exported, now or later; a file system that cannot lock is
// vfs.ErrNotSupp.
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

// Xattrs implements vfs.Xattrer.
func (v *View) Xattrs(ctx context.Context, h vfs.Handle) ([]string, error) {
	r, err := v.ref(ctx, &h)
	if err != nil {
		return nil, err
	}
	defer r.leave()
	power, ok := vfs.As[vfs.Xattrer](r.fs)
	if !ok {
		return nil, vfs.ErrNotSupp
	}
	return power.Xattrs(ctx, r.h)
}

// Xattr implements vfs.Xattrer.
func (v *View) Xattr(ctx context.Context, h vfs.Handle, name string) ([]byte, error) {
	r, err := v.ref(ctx, &h)
	if err != nil {
		return nil, err
	}
	defer r.leave()
	power, ok := vfs.As[vfs.Xattrer](r.fs)
	if !ok {
		return nil, vfs.ErrNotSupp
	}
	return power.Xattr(ctx, r.h, name)
}

// SetXattr implements vfs.Xattrer.
func (v *View) SetXattr(ctx context.Context, h vfs.Handle, name string, value []byte, how vfs.XattrHow) error {
	return v.changeXattr(ctx, &h, name, func(r *ref, power vfs.Xattrer) error { return power.SetXattr(ctx, r.h, name, value, how) })
}

// RemoveXattr implements vfs.Xattrer.
func (v *View) RemoveXattr(ctx context.Context, h vfs.Handle, name string) error {
	return v.changeXattr(ctx, &h, name, func(r *ref, power vfs.Xattrer) error { return power.RemoveXattr(ctx, r.h, name) })
}

// changeXattr changes an attribute of users, which gives nobody a right: nobody has to be judged
// again.
func (v *View) changeXattr(ctx context.Context, sealed *vfs.Handle, name string, do func(*ref, vfs.Xattrer) error) error {
	r, err := v.change(ctx, sealed)
	if err != nil {
		return err
	}
	defer r.leave()
	power, ok := vfs.As[vfs.Xattrer](r.fs)
	if !ok {
		return vfs.ErrNotSupp
	}
	if err := vfs.CheckXattr(name); err != nil {
		return err
	}
	if err := do(&r, power); err != nil {
		return err
	}
	return r.stable(ctx, r.h)
}

// Put implements vfs.Putter, for views that are Unstable. For others it is
// vfs.ErrNotSupp: a file system closes the file, and a sync through another descriptor may
// not be told that the disk failed to take the bytes (Linux, lib/errseq.c: each failure is
// told to those who have the file open, and to the next who opens it, if nobody was told).
func (v *View) Put(ctx context.Context, dir vfs.Handle, name string, mode uint32, data []byte) (vfs.Handle, vfs.Attr, error) {
	r, err := v.change(ctx, &dir)
	if err != nil {
		return vfs.Handle{}, vfs.Attr{}, err
	}
	defer r.leave()
	power, ok := vfs.As[vfs.Putter](r.fs)
	if !ok || !v.unstable {
		return vfs.Handle{}, vfs.Attr{}, vfs.ErrNotSupp
	}
	naming := r.giving(&r.h)
	h, attr, err := power.Put(ctx, r.h, name, mode, data)
	naming.end()
	if err != nil {
		return vfs.Handle{}, attr, err
	}
	h, err = r.seal(&h)
	return h, attr, err
}

// Lock implements vfs.Locker. On a read-only export an exclusive lock is
// vfs.ErrROFS, as with nfsd: exclusive locks are for writers.
func (v *View) Lock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	return v.locker(ctx, &h, func(r *ref, power vfs.Locker) error {
		if r.readOnly && l.Exclusive {
			return v.rofs(r.seen)
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

// ReleaseLocks implements vfs.Locker in all file systems that are exported or still in
// use. Those that the caller may not use, or may no longer use, are included.
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

// Unwrap returns the powers of the file below that this one passes on, as a chain of
// wrappers, and nothing else of it.
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
