package memfs

import (
	"github.com/nfsbox/nfsbox/internal/base/posixacl"
	"github.com/nfsbox/nfsbox/vfs"
)

// Rights, as in the last three bits of a mode.
const (
	mayRead  = 4
	mayWrite = 2
	mayExec  = 1 // in a directory: look names up
)

const (
	setUID = 0o4000
	setGID = 0o2000
	sticky = 0o1000
)

func (f *FS) super() bool { return f.who == nil || f.who.UID == 0 }

func (f *FS) uid() uint32 {
	if f.who == nil {
		return 0
	}
	return f.who.UID
}

func (f *FS) gid() uint32 {
	if f.who == nil {
		return 0
	}
	return f.who.GID
}

func (f *FS) inGroup(gid uint32) bool { return f.super() || f.who.InGroup(gid) }

// owns reports whether the caller may do what the owner of n may.
func (f *FS) owns(n *inode) bool { return f.super() || f.who.UID == n.uid }

// may returns an error unless the caller has the rights in want on n. Only one class counts: an
// owner that the mode denies does not get the others' rights. The superuser has all rights,
// except to execute a file that has no execute bit. An access control list decides instead of
// the mode.
func (f *FS) may(n *inode, want uint32) error {
	have := n.mode & 7
	if n.acl.Access != nil && !f.super() {
		if !posixacl.Permits(n.acl.Access, f.who, n.uid, n.gid, want) {
			return vfs.ErrAccess
		}
		return nil
	}
	switch {
	case f.super():
		have = mayRead | mayWrite | mayExec
		if n.typ == vfs.TypeReg && n.mode&0o111 == 0 {
			have &^= mayExec
		}
	case f.who.UID == n.uid:
		have = n.mode >> 6 & 7
	case f.who.InGroup(n.gid):
		have = n.mode >> 3 & 7
	}
	if have&want != want {
		return vfs.ErrAccess
	}
	return nil
}

// mayTake returns an error unless the caller may remove the name of n from dir: it may write to
// dir and, if that is sticky, owns one of the two.
func (f *FS) mayTake(dir, n *inode) error {
	if err := f.may(dir, mayWrite|mayExec); err != nil {
		return err
	}
	if dir.mode&sticky != 0 && !f.owns(n) && !f.owns(dir) {
		return vfs.ErrPerm
	}
	return nil
}

// unprivilege clears set-uid and set-gid of a file that was given away or written to. Set-gid
// without the group's execute bit stays: it once meant mandatory locking.
func (n *inode) unprivilege() {
	if n.typ == vfs.TypeDir {
		return
	}
	n.mode &^= setUID
	if n.mode&0o010 != 0 {
		n.mode &^= setGID
	}
}
