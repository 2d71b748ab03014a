package dirfs

import (
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// dirFlags open a directory for looking names up in it, also if it may not be read.
	dirFlags  = unix.O_PATH
	utimeOmit = unix.UTIME_OMIT
	utimeNow  = unix.UTIME_NOW

	statMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME | unix.STATX_MNT_ID
)

// self fills st with the attributes of d.
func (d *hostDir) self(st *stat) error { return statFD(d.fd, st) }

func statFD(fd int, st *stat) error { return statx(fd, "", unix.AT_EMPTY_PATH, st) }

func statAt(fd int, name string, st *stat) error {
	return statx(fd, name, unix.AT_SYMLINK_NOFOLLOW, st)
}

// follow fills st with the attributes of what name in d leads to.
func (d *hostDir) follow(name string, st *stat) error { return statx(d.fd, name, 0, st) }

func statx(fd int, name string, flags int, st *stat) error {
	var x unix.Statx_t
	if err := again(func() error { return unix.Statx(fd, name, flags|unix.AT_STATX_SYNC_AS_STAT, statMask, &x) }); err != nil {
		return err
	}
	// File systems without a device: overlayfs, those that do not reuse inode numbers soon
	// (tmpfs, btrfs), and those that keep no time of birth.
	st.changes = x.Dev_major == 0
	dev := unix.Mkdev(x.Dev_major, x.Dev_minor)
	st.mount = dev
	if x.Mask&unix.STATX_MNT_ID != 0 {
		st.mount = x.Mnt_id
	}
	st.Attr = vfs.Attr{
		Valid: vfs.MaskV3,
		Type:  typeOf(uint32(x.Mode)), Mode: uint32(x.Mode) & 0o7777, Nlink: x.Nlink, UID: x.Uid, GID: x.Gid,
		Size: x.Size, Used: x.Blocks * 512, FileID: x.Ino, FSID: [2]uint64{dev, 0},
		Rdev:   uint64(x.Rdev_major)<<32 | uint64(x.Rdev_minor),
		Change: uint64(x.Ctime.Sec)*1e9 + uint64(x.Ctime.Nsec),
		Atime:  timeOf(x.Atime), Mtime: timeOf(x.Mtime), Ctime: timeOf(x.Ctime),
	}
	if x.Mask&unix.STATX_BTIME != 0 {
		st.Btime = timeOf(x.Btime)
		st.Valid |= vfs.MaskBtime
	}
	return nil
}

func timeOf(t unix.StatxTimestamp) time.Time { return time.Unix(t.Sec, int64(t.Nsec)) }

func (d *hostDir) mknod(name string, typ vfs.Type, mode uint32, rdev uint64) error {
	kind := map[vfs.Type]uint32{
		vfs.TypeFIFO: unix.S_IFIFO, vfs.TypeSocket: unix.S_IFSOCK, vfs.TypeBlock: unix.S_IFBLK, vfs.TypeChar: unix.S_IFCHR,
	}[typ]
	dev := 0
	if typ == vfs.TypeBlock || typ == vfs.TypeChar {
		dev = int(unix.Mkdev(uint32(rdev>>32), uint32(rdev)))
	}
	return again(func() error { return unix.Mknodat(d.fd, name, kind|mode, dev) })
}

// decides reports whether d has a default access control list, which gives new objects their
// mode instead of the umask.
func (d *hostDir) decides() bool {
	n, err := unix.Getxattr(procPath(d.fd), xattrDefault, nil)
	return err == nil && n > 0
}

// syncAll syncs the whole file system of d.
func (d *hostDir) syncAll() error {
	fd, err := d.readable() // syncfs refuses O_PATH
	if err != nil {
		return err
	}
	err = again(func() error { return unix.Syncfs(fd) })
	return errors.Join(err, unix.Close(fd))
}

// folds reports whether d takes names that differ only in case for one.
func (d *hostDir) folds() bool {
	fd, err := d.readable()
	if err != nil {
		return false
	}
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	_ = unix.Close(fd) // it was read only
	return err == nil && flags&casefold != 0
}

// casefold is FS_CASEFOLD_FL (linux/fs.h).
const casefold = 0x40000000

// hostObject is an object that is held by a descriptor, whatever happens to its name.
type hostObject struct{ fd int }

// object holds the object name in d, and fills st with its attributes.
func (d *hostDir) object(name string, st *stat) (x hostObject, err error) {
	x.fd = -1
	err = again(func() (err error) {
		x.fd, err = unix.Openat(d.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return x, err
	}
	if err = statFD(x.fd, st); err != nil {
		x.close()
	}
	return x, err
}

func (x *hostObject) close()              { _ = unix.Close(x.fd) } // nothing was written by it
func (x *hostObject) stat(st *stat) error { return statFD(x.fd, st) }

func (x *hostObject) readlink() (string, error) { return readlinkAt(x.fd, "") }

// procPath is a path of an open descriptor. It leads to the very object that is open,
// wherever its name has gone (proc_pid_fd(5)).
func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// chmod goes through /proc because fchmod(2) refuses O_PATH descriptors. Without /proc it
// needs Linux 6.6.
func (x *hostObject) chmod(mode uint32) error {
	err := again(func() error { return unix.Chmod(procPath(x.fd), mode) })
	if errors.Is(err, unix.ENOENT) {
		err = unix.Fchmodat(x.fd, "", mode, unix.AT_EMPTY_PATH)
	}
	return err
}

func (x *hostObject) chown(uid, gid int) error {
	return again(func() error { return unix.Fchownat(x.fd, "", uid, gid, unix.AT_EMPTY_PATH) })
}

func (x *hostObject) utimes(set *vfs.SetAttr) error {
	ts, err := timespecs(set)
	if err != nil {
		return err
	}
	return again(func() error { return unix.UtimesNanoAt(x.fd, "", ts, unix.AT_EMPTY_PATH) })
}

// link goes through /proc because AT_EMPTY_PATH needs a privilege that link(2) does not.
func (x *hostObject) link(dir *hostDir, name string) error {
	return again(func() error {
		return unix.Linkat(unix.AT_FDCWD, procPath(x.fd), dir.fd, name, unix.AT_SYMLINK_FOLLOW)
	})
}

func (x *hostObject) may(rights uint32) error {
	return again(func() error { return unix.Faccessat(x.fd, "", rights, unix.AT_EMPTY_PATH|unix.AT_EACCESS) })
}

// info fills in what statfs(2) says, and what is known of each type of file system.
func (x *hostObject) info(i *vfs.Info) error {
	var st unix.Statfs_t
	if err := again(func() error { return unix.Fstatfs(x.fd, &st) }); err != nil {
		return err
	}
	block := uint64(st.Frsize)
	if block == 0 {
		block = uint64(st.Bsize)
	}
	i.TotalBytes, i.FreeBytes, i.AvailBytes = st.Blocks*block, st.Bfree*block, st.Bavail*block
	i.TotalFiles, i.FreeFiles, i.AvailFiles = st.Files, st.Ffree, st.Ffree
	i.ReadMult, i.WriteMult = uint32(st.Bsize), uint32(st.Bsize)
	i.NameMax = min(uint32(st.Namelen), vfs.MaxName)
	switch int64(st.Type) {
	case unix.EXT4_SUPER_MAGIC:
		i.LinkMax = 65000
	case unix.BTRFS_SUPER_MAGIC:
		i.LinkMax = 65535
	case unix.XFS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		i.LinkMax = 1<<31 - 1
	case unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC:
		i.CaseInsensitive, i.HasLinks, i.HasSymlinks, i.TimeDelta = true, false, false, 2*time.Second
	case unix.NFS_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC: // NFSv3 may be behind either
		i.NFSTimes = true
	}
	return nil
}

// syncData makes the data of f stable, with the metadata needed to read it.
func syncData(f *os.File) error { return control(f, unix.Fdatasync) }

// descriptorsLeft is how many descriptors the process may still open.
func descriptorsLeft() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return maxShare
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		open = nil
	}
	return int(min(limit.Cur, 1<<20)) - len(open)
}
