package upstream

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// met is called with attributes that pass: it makes them those of this server, and has files that have changed opened
// anew.
func (s *shared) met(h vfs.Handle, a *vfs.Attr) {
	if a.Valid == 0 {
		return
	}
	if s.o.Keep {
		s.kept.notice(h, a)
	}
	a.FSID[1] ^= s.o.FSID
}

// gone is called with the error of a call about h: what is gone is not read on.
func (s *shared) gone(h vfs.Handle, err error) {
	if err != nil && s.o.Keep && errors.Is(err, vfs.ErrStale) {
		s.kept.drop(h)
	}
}

func (s *shared) metWCC(h vfs.Handle, w *vfs.WCC) { s.met(h, &w.After) }

// Root implements vfs.FS.
func (f *FS) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) {
	fs, err := f.below()
	if err != nil {
		return vfs.Handle{}, vfs.Attr{}, err
	}
	h, a, err := fs.Root(ctx)
	f.s.met(h, &a)
	return h, a, err
}

// Info implements vfs.FS.
func (f *FS) Info(ctx context.Context, h vfs.Handle, want vfs.InfoMask) (vfs.Info, error) {
	fs, err := f.below()
	if err != nil {
		return vfs.Info{}, err
	}
	return fs.Info(ctx, h, want)
}

// GetAttr implements vfs.FS.
func (f *FS) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	fs, err := f.below()
	if err != nil {
		return vfs.Attr{}, err
	}
	a, err := fs.GetAttr(ctx, h, want)
	f.s.met(h, &a)
	f.s.gone(h, err)
	return a, err
}

// SetAttr implements vfs.FS.
func (f *FS) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	fs, err := f.below()
	if err != nil {
		return vfs.WCC{}, err
	}
	wcc, err := fs.SetAttr(ctx, h, set, guard)
	f.s.metWCC(h, &wcc)
	return wcc, err
}

// Access implements vfs.FS.
func (f *FS) Access(ctx context.Context, h vfs.Handle, want vfs.Access) (vfs.Access, vfs.Attr, error) {
	fs, err := f.below()
	if err != nil {
		return 0, vfs.Attr{}, err
	}
	got, a, err := fs.Access(ctx, h, want)
	f.s.met(h, &a)
	f.s.gone(h, err)
	return got, a, err
}

// Lookup implements vfs.FS.
func (f *FS) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, a, dirAttr vfs.Attr, err error) {
	if f.s.o.Probe.meets(name) {
		return h, a, dirAttr, vfs.ErrNoEnt // it has gone around
	}
	fs, err := f.below()
	if err != nil {
		return h, a, dirAttr, err
	}
	h, a, dirAttr, err = fs.Lookup(ctx, dir, name)
	f.s.met(h, &a)
	f.s.met(dir, &dirAttr)
	return h, a, dirAttr, err
}

// Readlink implements vfs.FS.
func (f *FS) Readlink(ctx context.Context, h vfs.Handle) (string, vfs.Attr, error) {
	fs, err := f.below()
	if err != nil {
		return "", vfs.Attr{}, err
	}
	target, a, err := fs.Readlink(ctx, h)
	f.s.met(h, &a)
	return target, a, err
}

// Create implements vfs.FS.
func (f *FS) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (h vfs.Handle, a vfs.Attr, wcc vfs.WCC, err error) {
	fs, err := f.below()
	if err != nil {
		return h, a, wcc, err
	}
	h, a, wcc, err = fs.Create(ctx, dir, name, how)
	f.s.met(h, &a)
	f.s.metWCC(dir, &wcc)
	return h, a, wcc, err
}

// Link implements vfs.FS.
func (f *FS) Link(ctx context.Context, h, dir vfs.Handle, name string) (vfs.Attr, vfs.WCC, error) {
	fs, err := f.below()
	if err != nil {
		return vfs.Attr{}, vfs.WCC{}, err
	}
	a, wcc, err := fs.Link(ctx, h, dir, name)
	f.s.met(h, &a)
	f.s.metWCC(dir, &wcc)
	return a, wcc, err
}

// Remove implements vfs.FS.
func (f *FS) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	fs, err := f.below()
	if err != nil {
		return vfs.WCC{}, err
	}
	wcc, err := fs.Remove(ctx, dir, name, isDir)
	f.s.metWCC(dir, &wcc)
	return wcc, err
}

// Rename implements vfs.FS.
func (f *FS) Rename(ctx context.Context, fromDir vfs.Handle, fromName string, toDir vfs.Handle, toName string) (from, to vfs.WCC, err error) {
	fs, err := f.below()
	if err != nil {
		return from, to, err
	}
	from, to, err = fs.Rename(ctx, fromDir, fromName, toDir, toName)
	f.s.metWCC(fromDir, &from)
	f.s.metWCC(toDir, &to)
	return from, to, err
}

// ReadDir implements vfs.FS.
func (f *FS) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		fs, err := f.below()
		if err != nil {
			yield(nil, err)
			return
		}
		for e, err := range fs.ReadDir(ctx, dir, from, want, maxBytes) {
			if err == nil {
				f.s.met(e.Handle, &e.Attr)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Locks are those of the other server, which has no other owners than those of this one's clients. Its restart is
// noticed, and locks are reclaimed, below.

// locker is the caller's power to lock.
func (f *FS) locker() (vfs.Locker, error) {
	fs, err := f.below()
	if err != nil {
		return nil, err
	}
	return vfs.LockerOf(fs), nil
}

// Lock implements vfs.Locker.
func (f *FS) Lock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	k, err := f.locker()
	if err != nil {
		return err
	}
	return k.Lock(ctx, h, l)
}

// Unlock implements vfs.Locker.
func (f *FS) Unlock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	k, err := f.locker()
	if err != nil {
		return err
	}
	return k.Unlock(ctx, h, l)
}

// TestLock implements vfs.Locker.
func (f *FS) TestLock(ctx context.Context, h vfs.Handle, l *vfs.Lock) (vfs.Lock, bool, error) {
	k, err := f.locker()
	if err != nil {
		return vfs.Lock{}, false, err
	}
	return k.TestLock(ctx, h, l)
}

// ReleaseLocks implements vfs.Locker. Before there was a connection there are no locks.
func (f *FS) ReleaseLocks(ctx context.Context, whom func(*vfs.Owner) bool) error {
	k, err := f.locker()
	if err != nil {
		return nil
	}
	return k.ReleaseLocks(ctx, whom)
}

// ACL implements vfs.ACLer.
func (f *FS) ACL(ctx context.Context, h vfs.Handle) (vfs.ACL, error) {
	fs, err := f.below()
	if err != nil {
		return vfs.ACL{}, err
	}
	power, ok := vfs.As[vfs.ACLer](fs)
	if !ok {
		return vfs.ACL{}, vfs.ErrNotSupp
	}
	return power.ACL(ctx, h)
}

// SetACL implements vfs.ACLer.
func (f *FS) SetACL(ctx context.Context, h vfs.Handle, acl vfs.ACL) error {
	fs, err := f.below()
	if err != nil {
		return err
	}
	power, ok := vfs.As[vfs.ACLer](fs)
	if !ok {
		return vfs.ErrNotSupp
	}
	return power.SetACL(ctx, h, acl)
}
