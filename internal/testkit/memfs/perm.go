package memfs

import (
	"github.com/nfsbox/nfsbox/internal/base/posixacl"
	"github.com/nfsbox/nfsbox/vfs"
)

// The rights of a mode, as in its last three bits.
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

// may is nil if the caller has the rights in want on n. One class counts and no
// other: an owner whom the mode denies is not helped by what others may. The
// superuser may all, but run a file that nobody may run. Where there is an access
// control list it decides instead of the mode.
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

// mayTake is nil if the caller may take the name of n out of dir: if it may write
// to dir and, where that is sticky, owns one of the two.
func (f *FS) mayTake(dir, n *inode) error {
	if err := f.may(dir, mayWrite|mayExec); err != nil {
		return err
	}
	if dir.mode&sticky != 0 && !f.owns(n) && !f.owns(dir) {
		return vfs.ErrPerm
	}
	return nil
}

// unprivilege takes set-uid and set-gid from a file that was given away or
// written to. Set-gid without the group's right to run it once meant mandatory
// locking, and stays.
func (n *inode) unprivilege() {
	if n.typ == vfs.TypeDir {
		return
	}
	n.mode &^= setUID
	if n.mode&0o010 != 0 {
		n.mode &^= setGID
	}
}
