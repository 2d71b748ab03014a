//go:build linux

package linux

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// statMask asks statx(2) for all that an Attr holds, and for the mount.
const statMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME | unix.STATX_MNT_ID

// Stat is what statx(2) says of an object.
type Stat struct{ unix.Statx_t }

// EmptyName is the name that stands for the descriptor itself, with AT_EMPTY_PATH.
var EmptyName = [1]byte{}

// Of fills st with the attributes of what fd has open, which may be an O_PATH descriptor.
func (st *Stat) Of(fd int) error {
	return st.Statx(fd, &EmptyName[0], unix.AT_EMPTY_PATH)
}

// At fills st with the attributes of name in dirfd, and not of what a symbolic link leads
// to.
func (st *Stat) At(dirfd int, name string) error {
	p, err := unix.BytePtrFromString(name)
	if err != nil {
		return vfs.ErrInval
	}
	return st.Statx(dirfd, p, unix.AT_SYMLINK_NOFOLLOW)
}

// Statx is statx(2). It spares the copy of the name that unix.Statx makes: listings and
// reads call it for each entry and block. name ends in a NUL.
func (st *Stat) Statx(fd int, name *byte, flags int) error {
	_, _, e := unix.Syscall6(unix.SYS_STATX, uintptr(fd), uintptr(unsafe.Pointer(name)),
		uintptr(flags|unix.AT_STATX_SYNC_AS_STAT), statMask, uintptr(unsafe.Pointer(&st.Statx_t)), 0)
	if e != 0 {
		return e
	}
	return nil
}

// Is reports whether the object is of that type (S_IFMT bits).
func (st *Stat) Is(fmtBits uint16) bool { return st.Mode&unix.S_IFMT == fmtBits }

// Dev is the device number of the file system.
func (st *Stat) Dev() uint64 { return uint64(st.Dev_major)<<32 | uint64(st.Dev_minor) }

// Perm are the mode bits below the type.
func (st *Stat) Perm() uint32 { return uint32(st.Mode) & 07777 }

// Ident is what st alone says of it: of the generation, the time of birth in
// nanoseconds.
func (st *Stat) Ident() Ident {
	id := Ident{Ino: st.Ino}
	if st.Mask&unix.STATX_BTIME != 0 {
		id.Gen = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return id
}

// TypeOf is the type in a mode.
func TypeOf(mode uint16) vfs.Type {
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

// TimeOf turns a timestamp into a time.
func TimeOf(t unix.StatxTimestamp) time.Time { return time.Unix(t.Sec, int64(t.Nsec)) }

// Change is what stands for NFSv4's changeid: the ctime. STATX_CHANGE_COOKIE
// would be better, and the kernel keeps it to itself.
func (st *Stat) Change() uint64 { return uint64(st.Ctime.Sec)*1e9 + uint64(st.Ctime.Nsec) }

// Ident tells an object from all others, also from those that had or will have its
// inode number.
type Ident struct {
	Ino uint64
	Gen int64 // what the generations of a number differ in; 0: the file system tells none
}
