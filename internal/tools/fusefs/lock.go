//go:build linux

package fusefs

import (
	"encoding/binary"
	"errors"
	"math"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/nfsbox/nfsbox/vfs"
)

// ownerOf is the kernel's owner of a lock, as the contract has owners.
func ownerOf(id uint64) vfs.Owner {
	o := vfs.Owner{N: 8}
	binary.BigEndian.PutUint64(o.ID[:], id)
	return o
}

// lockOf is a lock as the contract has it. The kernel's last offset is that to which a lock without an end goes.
func lockOf(owner uint64, l *fuse.FileLock) vfs.Lock {
	v := vfs.Lock{Owner: ownerOf(owner), Exclusive: l.Typ == syscall.F_WRLCK, Off: l.Start}
	if l.End < math.MaxInt64 {
		v.Len = l.End - l.Start + 1
	}
	return v
}

// GetLk implements fuse.RawFileSystem.
func (m *Mount) GetLk(cancel <-chan struct{}, in *fuse.LkIn, out *fuse.LkOut) fuse.Status {
	c := m.begin(cancel, &in.InHeader)
	defer c.end()
	_, h, ok := m.node(in.NodeId)
	if !ok || m.locker == nil {
		return fuse.ENOSYS
	}
	l := lockOf(in.Owner, &in.Lk)
	held, free, err := c.locks().TestLock(c, h, &l)
	if err != nil {
		return errno(c, err)
	}
	if free {
		out.Lk = fuse.FileLock{Typ: syscall.F_UNLCK}
		return fuse.OK
	}
	out.Lk = fuse.FileLock{Start: held.Off, End: math.MaxInt64, Typ: syscall.F_RDLCK}
	if held.Len > 0 {
		out.Lk.End = held.Off + held.Len - 1
	}
	if held.Exclusive {
		out.Lk.Typ = syscall.F_WRLCK
	}
	return fuse.OK
}

// locks is the power to lock, in the caller's view. The mount has looked that it is there.
func (c *call) locks() vfs.Locker {
	l, _ := vfs.As[vfs.Locker](c.fs)
	return l
}

// SetLk implements fuse.RawFileSystem.
func (m *Mount) SetLk(cancel <-chan struct{}, in *fuse.LkIn) fuse.Status {
	c := m.begin(cancel, &in.InHeader)
	defer c.end()
	return errno(c, m.setLock(c, in))
}

// SetLkw implements fuse.RawFileSystem: it asks until it has the lock.
func (m *Mount) SetLkw(cancel <-chan struct{}, in *fuse.LkIn) fuse.Status {
	c := m.begin(cancel, &in.InHeader)
	defer c.end()
	for pause := lockPause; ; pause = min(2*pause, maxLockPause) {
		err := m.setLock(c, in)
		if !errors.Is(err, vfs.ErrLocked) {
			return errno(c, err)
		}
		select {
		case <-time.After(pause):
		case <-c.Done():
			return fuse.EINTR
		}
	}
}

func (m *Mount) setLock(c *call, in *fuse.LkIn) error {
	n, h, ok := m.node(in.NodeId)
	if !ok {
		return vfs.ErrStale
	}
	if m.locker == nil {
		return vfs.ErrNotSupp
	}
	l := lockOf(in.Owner, &in.Lk)
	f, ok := m.files.get(in.Fh)
	if in.Lk.Typ == syscall.F_UNLCK {
		var lost error
		if ok && f.access&vfs.ShareWrite != 0 {
			lost = f.commit(c) // before another client has the lock
		}
		return errors.Join(c.locks().Unlock(c, h, &l), lost)
	}
	if !ok {
		return syscall.EBADF
	}
	n.owns(in.Owner, f) // first: a lock whose answer is lost has to be freed, too
	err := c.locks().Lock(c, h, &l)
	if err == nil {
		// What the kernel has of the file is from before the lock. Its times may not show what others have changed in the same moment.
		_ = m.server.InodeNotify(n.id, 0, 0) // ENOENT: it has none
	}
	return err
}

// owns notes that an owner may hold locks on the object, and by which open file it asked last.
func (n *node) owns(owner uint64, f *openFile) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.owners == nil {
		n.owners = make(map[uint64]*openFile)
	}
	n.owners[owner] = f
}

// disowns forgets an owner, and returns what owns has noted; nil if it has not.
func (n *node) disowns(owner uint64) *openFile {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.owners[owner]
	delete(n.owners, owner)
	return f
}

// ownedBy forgets, and returns, the owners that asked last by f.
func (n *node) ownedBy(f *openFile) (owners []uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for owner, by := range n.owners {
		if by == f {
			owners = append(owners, owner)
			delete(n.owners, owner)
		}
	}
	return owners
}

// unlockAll frees what an owner holds, at a close. The server is not asked where nobody has locked.
func (m *Mount) unlockAll(c *call, n *node, owner uint64) error {
	f := n.disowns(owner)
	if f == nil {
		return nil
	}
	all := vfs.Lock{Owner: ownerOf(owner)}
	err := c.locks().Unlock(c, n.handle(), &all)
	if err != nil {
		n.owns(owner, f)
	}
	return err
}

// unlockLast frees, at the last close of a file, the locks of those who own no process: flock(2), and open file
// descriptions. The kernel does not say which they are.
func (m *Mount) unlockLast(f *openFile) {
	for _, owner := range f.node.ownedBy(f) {
		c := &call{fs: f.fs, base: m.base}
		all := vfs.Lock{Owner: ownerOf(owner)}
		if err := c.locks().Unlock(c, f.node.handle(), &all); err != nil {
			m.log("a lock was not freed: " + err.Error())
		}
	}
}
