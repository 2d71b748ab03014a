//go:build linux

package localfs

import (
	"math"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/identity"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// As whom a write is made.
//
// To take on the identity of a caller for the length of one write costs six
// system calls, more than all the rest of a small WRITE. What the kernel makes of
// the writer's identity is little, since the right to write was decided by
// the call that opened the file:
//
//   - The set-uid and set-gid bits fall when a process writes that has not got
//     CAP_FSETID. Root has. A set-gid bit without the right to execute stays if the
//     writer is in the group of the file.
//   - A quota does not bind a process with CAP_SYS_RESOURCE. (Blocks are charged to the
//     owner of the file, whatever user writes.) The same capability, and the user id 0
//     itself, open the blocks that ext4 and f2fs reserve for root.
//   - File capabilities (the attribute security.capability) go whatever user writes.
//
// So a write is made as the caller if the file has such a bit, if the process
// has that capability, or if the disk has not much more left than the reserve;
// and on what is mounted below the root, whose free space is not looked at.
// All other writes are made by the thread as it is. A server should give up
// CAP_SYS_RESOURCE at its start; one that keeps it pays on each write.

// asWriter runs f, which writes to a descriptor, as the caller.
func (v *FS) asWriter(f func() error) error {
	if !v.otherWriter() {
		return f()
	}
	return v.creds.As(v.who, identity.Whole, f)
}

// otherWriter reports whether the kernel may treat a write by the caller otherwise than one by
// this process.
func (v *FS) otherWriter() bool { return v.creds.ActsAsOther(v.who) }

// identityMatters reports whether a write to a file with the attributes st has to
// be made as the caller.
func (v *FS) identityMatters(st *linux.Stat) bool {
	return v.otherWriter() &&
		(st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 || v.creds.Has(unix.CAP_SYS_RESOURCE) ||
			st.Mnt_id != v.rootMount || v.nearReserve())
}

const (
	// reserveLook is the number of writes after which one looks at the disk
	// again. Programs of this host, too, fill it meanwhile: what so many writes
	// bring is the most that the reserve can lose to others than root.
	reserveLook = 256
	// reserveRoom is how much room there has to be beside the reserve: twice what
	// is written before the next look.
	reserveRoom = 2 * reserveLook * MaxIO
)

// nearReserve reports whether the root's file system is nearly full but for what
// is reserved.
func (h *host) nearReserve() bool {
	r := &h.reserve
	if r.writes.Add(-1) >= 0 {
		return r.near.Load()
	}
	near := true
	var st unix.Statfs_t
	if err := unix.Fstatfs(h.rootFD, &st); err == nil {
		near = st.Bfree != st.Bavail && st.Bavail*uint64(max(st.Frsize, 1)) < reserveRoom
	}
	r.near.Store(near)
	r.writes.Store(reserveLook)
	return near
}

// setIDs are the mode bits by which a program runs as the owner of its file, or as
// the group.
const setIDs = unix.S_ISUID | unix.S_ISGID

// cannotAct reports whether the caller is another user than this process, which cannot act
// for it. What such a caller makes belongs to the user of this process.
func (v *FS) cannotAct() bool {
	return v.creds.CannotActAs(v.who)
}

// settable returns mode, which set asks for, without the bits by which a caller that the
// process cannot act for would make a program that runs as the process' user. The set-gid
// bit stays if the caller is in the object's group, as with the kernel. A directory keeps
// the one that it has: it hands on a group and no rights.
func (v *FS) settable(mode uint32, st *linux.Stat, set *vfs.SetAttr) uint32 {
	if mode&setIDs == 0 || !v.cannotAct() {
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

// dropSetIDs takes the set-id bits of d, a file that st describes, before a caller writes
// to it that the process cannot act for. The kernel does so by itself if this process has
// no CAP_FSETID.
func (v *FS) dropSetIDs(d *fdcache.Desc, st *linux.Stat) error {
	if st.Mode&setIDs == 0 || !v.cannotAct() {
		return nil
	}
	return linux.Fail("chmod", v.sys.Fchmod(d.FD, st.Perm()&^setIDs))
}

// dropSetIDsOf is dropSetIDs of a d whose attributes are not known yet.
func (v *FS) dropSetIDsOf(d *fdcache.Desc) error {
	if !v.cannotAct() {
		return nil
	}
	var st linux.Stat
	if err := st.Of(d.FD); err != nil {
		return linux.Fail("statx", err)
	}
	return v.dropSetIDs(d, &st)
}

// writeAs writes p to d, which has the attributes st.
func (v *FS) writeAs(d *fdcache.Desc, st *linux.Stat, p []byte, off int64) (n int, err error) {
	if v.identityMatters(st) {
		return v.writeSwitched(d, st, p, off)
	}
	if err := v.dropSetIDs(d, st); err != nil {
		return 0, err
	}
	return v.pwrite(d.FD, p, off)
}

func (v *FS) writeSwitched(d *fdcache.Desc, st *linux.Stat, p []byte, off int64) (n int, err error) {
	v.counts.asCaller.Add(1)
	x := identity.UserOnly
	if st.Mode&unix.S_ISGID != 0 {
		x = identity.Whole
	}
	err = v.creds.As(v.who, x, func() (err error) {
		n, err = v.disk.Pwrite(d.FD, p, off)
		return linux.Fail("pwrite", err)
	})
	return n, err
}

// truncate sets the size of d, as the caller: set-uid bits fall here, too.
func (v *FS) truncate(d *fdcache.Desc, size uint64) error {
	if size > math.MaxInt64 {
		return vfs.ErrFBig
	}
	if err := v.dropSetIDsOf(d); err != nil {
		return err
	}
	return v.asWriter(func() error { return linux.Fail("ftruncate", v.sys.Ftruncate(d.FD, int64(size))) })
}
