//go:build linux

package localfs

import (
	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// setIDs are the mode bits by which a program runs as the owner of its file, or as
// the group.
const setIDs = unix.S_ISUID | unix.S_ISGID

// stranger reports whether the caller is another user than this process, which cannot
// act for it: what the caller makes belongs to the user of this process.
func (v *FS) stranger() bool {
	return v.creds.Stranger(v.who)
}

// settable returns mode, which set asks for, without the bits by which a stranger would
// make a program that runs as the user of this process. The set-gid bit is the stranger's
// to set if it is in the object's group, as with the kernel. A directory keeps the one
// that it has, which hands on its group and no rights.
func (v *FS) settable(mode uint32, st *linux.Stat, set *vfs.SetAttr) uint32 {
	if mode&setIDs == 0 || !v.stranger() {
		return mode
	}
	mode &^= unix.S_ISUID
	gid := st.Gid
	if set.Valid&vfs.MaskGID != 0 {
		gid = set.GID
	}
	kept := st.Is(unix.S_IFDIR) && st.Mode&unix.S_ISGID != 0
	if !kept && !v.who.Caller.InGroup(gid) {
		mode &^= unix.S_ISGID
	}
	return mode
}

// dropSetIDs takes the set-id bits of d, a file that st describes, before a stranger
// writes to it. The kernel does so by itself where this process has not got CAP_FSETID.
func (v *FS) dropSetIDs(d *fdcache.Desc, st *linux.Stat) error {
	if st.Mode&setIDs == 0 || !v.stranger() {
		return nil
	}
	return linux.Fail("chmod", v.sys.Fchmod(d.FD, st.Perm()&^setIDs))
}

// dropSetIDsOf is dropSetIDs of a d whose attributes are not known yet.
func (v *FS) dropSetIDsOf(d *fdcache.Desc) error {
	if !v.stranger() {
		return nil
	}
	var st linux.Stat
	if err := st.Of(d.FD); err != nil {
		return linux.Fail("statx", err)
	}
	return v.dropSetIDs(d, &st)
}
