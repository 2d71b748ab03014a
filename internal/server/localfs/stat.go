//go:build linux

package localfs

import (
	"errors"
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// statMask asks statx(2) for all that an Attr holds, and for the mount.
const statMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME | unix.STATX_MNT_ID

// stat is what statx says about an object.
type stat struct{ unix.Statx_t }

// emptyName is the name that, with AT_EMPTY_PATH, stands for the descriptor.
var emptyName = [1]byte{}

// statFD fills st with the attributes of what fd has open, O_PATH or not.
func (st *stat) statFD(fd int) error {
	return st.statx(fd, &emptyName[0], unix.AT_EMPTY_PATH)
}

// statAt fills st with the attributes of name in dirfd; a symlink's are its own.
func (st *stat) statAt(dirfd int, name string) error {
	p, err := unix.BytePtrFromString(name)
	if err != nil {
		return vfs.ErrInval
	}
	return st.statx(dirfd, p, unix.AT_SYMLINK_NOFOLLOW)
}

// statx spares the copy of the name that unix.Statx makes: listings and reads
// call it for every entry and every block. name ends in a NUL.
func (st *stat) statx(fd int, name *byte, flags int) error {
	_, _, e := unix.Syscall6(unix.SYS_STATX, uintptr(fd), uintptr(unsafe.Pointer(name)),
		uintptr(flags|unix.AT_STATX_SYNC_AS_STAT), statMask, uintptr(unsafe.Pointer(&st.Statx_t)), 0)
	if e != 0 {
		return e
	}
	return nil
}

func (st *stat) is(fmtBits uint16) bool { return st.Mode&unix.S_IFMT == fmtBits }
func (st *stat) dev() uint64            { return uint64(st.Dev_major)<<32 | uint64(st.Dev_minor) }
func (st *stat) perm() uint32           { return uint32(st.Mode) & 07777 }

// ident is what st alone says of it: of the generation, the time of birth in
// nanoseconds.
func (st *stat) ident() ident {
	id := ident{ino: st.Ino}
	if st.Mask&unix.STATX_BTIME != 0 {
		id.gen = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return id
}

func typeOf(mode uint16) vfs.Type {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return vfs.TypeReg
	case unix.S_IFDIR:
		return vfs.TypeDir
	case unix.S_IFBLK:
		return vfs.TypeBlock
	case unix.S_IFCHR:
		return vfs.TypeChar
	case unix.S_IFLNK:
		return vfs.TypeSymlink
	case unix.S_IFSOCK:
		return vfs.TypeSocket
	case unix.S_IFIFO:
		return vfs.TypeFIFO
	}
	return vfs.TypeNone
}

func timeOf(t unix.StatxTimestamp) time.Time { return time.Unix(t.Sec, int64(t.Nsec)) }

// change is what stands for NFSv4's changeid: the ctime. STATX_CHANGE_COOKIE
// would be better, and the kernel keeps it to itself.
func (st *stat) change() uint64 { return uint64(st.Ctime.Sec)*1e9 + uint64(st.Ctime.Nsec) }

// attr turns st into attributes as the contract has them.
func (h *host) attr(st *stat, a *vfs.Attr) {
	*a = vfs.Attr{
		Valid: vfs.MaskV3,
		Type:  typeOf(st.Mode), Mode: st.perm(), Nlink: st.Nlink, UID: st.Uid, GID: st.Gid,
		Size: st.Size, Used: st.Blocks * 512, FileID: st.Ino,
		Rdev:   uint64(st.Rdev_major)<<32 | uint64(st.Rdev_minor),
		Change: st.change(),
		FSID:   [2]uint64{h.fsid, 0},
		Atime:  timeOf(st.Atime), Mtime: timeOf(st.Mtime), Ctime: timeOf(st.Ctime),
	}
	if st.Mnt_id != h.rootMount {
		a.FSID[1], _ = h.mountKey(st.Mnt_id)
	} else if st.dev() != h.rootDev {
		a.FSID[1] = st.dev()
	}
	if st.Mask&unix.STATX_BTIME != 0 {
		a.Btime = timeOf(st.Btime)
		a.Valid |= vfs.MaskBtime
	}
}

func preAttr(st *stat) vfs.PreAttr {
	return vfs.PreAttr{
		Valid: vfs.MaskSize | vfs.MaskChange | vfs.MaskMtime | vfs.MaskCtime,
		Size:  st.Size, Change: st.change(), Mtime: timeOf(st.Mtime), Ctime: timeOf(st.Ctime),
	}
}

// fail turns an error of the kernel into one of the contract. The everyday ones
// are their Status and nothing else, since a LOOKUP that finds nothing shall not
// cost a formatted message; those that an operator will want to understand keep
// what was tried.
func fail(op string, err error) error {
	if err == nil {
		return nil
	}
	var e syscall.Errno
	if !errors.As(err, &e) {
		return err
	}
	s, known := vfs.FromErrno(e)
	switch {
	case e == unix.EBADF:
		// Ours, not the handle's: a descriptor that should have been open.
		return fmt.Errorf("localfs: %s: %w: %s", op, vfs.ErrServerFault, e.Error())
	case !known, s == vfs.ErrIO, s == vfs.ErrBusy:
		return fmt.Errorf("localfs: %s: %w: %s", op, s, e.Error())
	}
	return s
}
