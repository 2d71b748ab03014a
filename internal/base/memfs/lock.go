package memfs

import (
	"context"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.Locker = (*FS)(nil)

// maxLockRanges bounds the separate ranges that one owner locks in one file. At the bound a
// further one is ErrBusy.
const maxLockRanges = 1024

// Lock implements vfs.Locker. A shared lock needs the right to read the file, an exclusive one
// the right to write it. A range that reaches beyond [MaxFileSize] is ErrFBig.
func (f *FS) Lock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	if err := f.begin(ctx, "lock", h); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, s, err := f.lockable(h, l)
	if err != nil {
		return err
	}
	want := uint32(mayRead)
	if l.Exclusive {
		want = mayWrite
	}
	if err := f.may(n, want); err != nil && !f.owns(n) {
		return err
	}
	if _, _, free := n.conflict(l.Owner, s); !free {
		return vfs.ErrLocked
	}
	return n.setLocks(l.Owner, append(byterange.Set(nil), n.locks[l.Owner]...).Put(s))
}

// Unlock implements vfs.Locker.
func (f *FS) Unlock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	if err := f.begin(ctx, "unlock", h); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, s, err := f.lockable(h, l)
	if err != nil {
		return err
	}
	return n.setLocks(l.Owner, append(byterange.Set(nil), n.locks[l.Owner]...).Take(s))
}

// TestLock implements vfs.Locker.
func (f *FS) TestLock(ctx context.Context, h vfs.Handle, l *vfs.Lock) (vfs.Lock, bool, error) {
	if err := f.begin(ctx, "testlock", h); err != nil {
		return vfs.Lock{}, false, err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, s, err := f.lockable(h, l)
	if err != nil {
		return vfs.Lock{}, false, err
	}
	if f.may(n, mayRead) != nil && f.may(n, mayWrite) != nil && !f.owns(n) {
		return vfs.Lock{}, false, vfs.ErrAccess
	}
	owner, held, free := n.conflict(l.Owner, s)
	if free {
		return vfs.Lock{}, true, nil
	}
	return vfs.Lock{Owner: owner, Exclusive: held.Exclusive, Off: held.First, Len: held.Len()}, false, nil
}

// ReleaseLocks implements vfs.Locker. whom must not call back.
func (f *FS) ReleaseLocks(ctx context.Context, whom func(*vfs.Owner) bool) error {
	if err := f.begin(ctx, "releaselocks", vfs.Handle{}); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.inodes {
		for owner := range n.locks {
			if whom(&owner) {
				delete(n.locks, owner)
			}
		}
	}
	return nil
}

// lockable returns the file of h and the range of l. The caller holds mu.
func (t *tree) lockable(h vfs.Handle, l *vfs.Lock) (*inode, byterange.Span, error) {
	s, ok := byterange.Of(l.Off, l.Len, l.Exclusive)
	n, err := t.get(h)
	switch {
	case err != nil:
	case n.dir != nil:
		err = vfs.ErrIsDir
	case n.typ != vfs.TypeReg:
		err = vfs.ErrInval
	case !ok:
		err = vfs.ErrFBig
	}
	return n, s, err
}

// conflict returns a lock of another owner that conflicts with s.
func (n *inode) conflict(owner vfs.Owner, s byterange.Span) (holder vfs.Owner, held byterange.Span, free bool) {
	for other, set := range n.locks {
		if other == owner {
			continue
		}
		if held, found := set.Conflict(s); found {
			return other, held, false
		}
	}
	return holder, held, true
}

func (n *inode) setLocks(owner vfs.Owner, set byterange.Set) error {
	switch {
	case len(set) > maxLockRanges:
		return vfs.ErrBusy
	case len(set) == 0:
		delete(n.locks, owner)
		return nil
	case n.locks == nil:
		n.locks = make(map[vfs.Owner]byterange.Set)
	}
	n.locks[owner] = set
	return nil
}
