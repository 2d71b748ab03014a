package dirfs

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

const (
	dirFlags  = unix.O_RDONLY
	utimeNow  = -1 // sys/stat.h
	utimeOmit = -2
)

// self fills st with the attributes of d.
func (d *hostDir) self(st *stat) error { return statFD(d.fd, st) }

func statFD(fd int, st *stat) error {
	var x unix.Stat_t
	err := again(func() error { return unix.Fstat(fd, &x) })
	st.of(&x)
	return err
}

func statAt(fd int, name string, st *stat) error {
	var x unix.Stat_t
	err := again(func() error { return unix.Fstatat(fd, name, &x, unix.AT_SYMLINK_NOFOLLOW) })
	st.of(&x)
	return err
}

// follow fills st with the attributes of what name in d leads to.
func (d *hostDir) follow(name string, st *stat) error {
	var x unix.Stat_t
	err := again(func() error { return unix.Fstatat(d.fd, name, &x, 0) })
	st.of(&x)
	return err
}

func (st *stat) of(x *unix.Stat_t) {
	ctime := time.Unix(x.Ctim.Unix())
	st.mount = uint64(x.Dev)
	st.Attr = vfs.Attr{
		Valid: vfs.MaskV3 | vfs.MaskBtime,
		Type:  typeOf(uint32(x.Mode)), Mode: uint32(x.Mode) & 0o7777, Nlink: uint32(x.Nlink), UID: x.Uid, GID: x.Gid,
		Size: uint64(x.Size), Used: uint64(x.Blocks) * 512, FileID: x.Ino, FSID: [2]uint64{uint64(x.Dev), 0},
		Rdev:   uint64(unix.Major(uint64(x.Rdev)))<<32 | uint64(unix.Minor(uint64(x.Rdev))),
		Change: uint64(ctime.UnixNano()),
		Atime:  time.Unix(x.Atim.Unix()), Mtime: time.Unix(x.Mtim.Unix()), Ctime: ctime, Btime: time.Unix(x.Btim.Unix()),
	}
}

// mknod is refused: macOS has no call that makes nodes below an open directory.
func (d *hostDir) mknod(string, vfs.Type, uint32, uint64) error { return vfs.ErrNotSupp }

func (d *hostDir) decides() bool { return false }

// syncAll syncs the whole file system of d by syncing d: HFS+ and APFS have one journal.
func (d *hostDir) syncAll() error { return d.sync() }

// folds reports whether d takes names that differ only in case for one.
func (d *hostDir) folds() bool {
	sensitive, err := unix.Fpathconf(d.fd, pathCaseSensitive)
	return err != nil || sensitive == 0
}

// pathCaseSensitive is _PC_CASE_SENSITIVE (unistd.h).
const pathCaseSensitive = 11

// list opens d for reading.
func (d *hostDir) list() (*os.File, error) {
	fd, err := d.readable()
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "directory"), nil
}

// hostObject is an object. A readable file or directory is open. Another is used by its name,
// which may come to lead to something else.
type hostObject struct {
	dir  *hostDir
	name string
	fd   int
}

// object holds the object name in d, and fills st with its attributes.
func (d *hostDir) object(name string, st *stat) (x hostObject, err error) {
	x = hostObject{d, name, -1}
	if err := statAt(d.fd, name, st); err != nil {
		return x, err
	}
	if st.Type != vfs.TypeReg && st.Type != vfs.TypeDir {
		return x, nil
	}
	fd, err := unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return x, nil // used by its name
	}
	x.fd = fd
	if err = statFD(fd, st); err != nil {
		x.close()
	}
	return x, err
}

func (x *hostObject) close() {
	if x.fd >= 0 {
		_ = unix.Close(x.fd) // it was read only
	}
}

func (x *hostObject) stat(st *stat) error {
	if x.fd >= 0 {
		return statFD(x.fd, st)
	}
	return statAt(x.dir.fd, x.name, st)
}

func (x *hostObject) readlink() (string, error) { return readlinkAt(x.dir.fd, x.name) }

func (x *hostObject) chmod(mode uint32) error {
	if x.fd >= 0 {
		return again(func() error { return unix.Fchmod(x.fd, mode) })
	}
	return again(func() error { return unix.Fchmodat(x.dir.fd, x.name, mode, unix.AT_SYMLINK_NOFOLLOW) })
}

func (x *hostObject) chown(uid, gid int) error {
	if x.fd >= 0 {
		return again(func() error { return unix.Fchown(x.fd, uid, gid) })
	}
	return again(func() error { return unix.Fchownat(x.dir.fd, x.name, uid, gid, unix.AT_SYMLINK_NOFOLLOW) })
}

func (x *hostObject) utimes(set *vfs.SetAttr) error {
	ts, err := timespecs(set)
	if err != nil {
		return err
	}
	return again(func() error { return unix.UtimesNanoAt(x.dir.fd, x.name, ts, unix.AT_SYMLINK_NOFOLLOW) })
}

func (x *hostObject) link(dir *hostDir, name string) error {
	return again(func() error { return unix.Linkat(x.dir.fd, x.name, dir.fd, name, 0) })
}

func (x *hostObject) may(rights uint32) error {
	var st stat
	if err := x.stat(&st); err != nil || st.Type == vfs.TypeSymlink {
		return err
	}
	return again(func() error { return unix.Faccessat(x.dir.fd, x.name, rights, unix.AT_EACCESS) })
}

func (x *hostObject) info(i *vfs.Info) error {
	fd := x.fd
	if fd < 0 {
		fd = x.dir.fd
	}
	var st unix.Statfs_t
	if err := again(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
		return err
	}
	block := uint64(st.Bsize)
	i.TotalBytes, i.FreeBytes, i.AvailBytes = st.Blocks*block, st.Bfree*block, st.Bavail*block
	i.TotalFiles, i.FreeFiles, i.AvailFiles = st.Files, st.Ffree, st.Ffree
	i.LinkMax, i.NFSTimes = 32767, true // it may be a mount of NFSv3
	return nil
}

// syncData makes the data of f stable. macOS has no call that leaves out other metadata.
func syncData(f *os.File) error { return f.Sync() }

// descriptorsLeft is how many descriptors the process may still open.
func descriptorsLeft() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return maxShare
	}
	open, err := os.ReadDir("/dev/fd")
	if errors.Is(err, os.ErrNotExist) {
		open = nil
	}
	return int(min(limit.Cur, 1<<20)) - len(open)
}
