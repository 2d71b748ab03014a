package exporttest

import (
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// attic is a directory of the export in which every user may make names.
const attic = "attic"

// attack is something that must not be possible by a descriptor for reading.
type attack struct {
	name string
	root []unix.Errno // how it may fail for root, which no mode of a file stops
	try  func(fd int, attic string) error
}

func proc(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// reopened opens the file again with flags.
func reopened(flags int) func(int, string) error {
	return func(fd int, _ string) error {
		n, err := unix.Open(proc(fd), flags|unix.O_CLOEXEC, 0)
		if err == nil {
			_ = unix.Close(n)
		}
		return err
	}
}

var (
	readOnly = []unix.Errno{unix.EROFS}
	another  = []unix.Errno{unix.EXDEV}
)

var attacks = []attack{
	{"reopened to be written", readOnly, reopened(unix.O_WRONLY)},
	{"reopened for both", readOnly, reopened(unix.O_RDWR)},
	{"reopened and truncated", readOnly, reopened(unix.O_RDONLY | unix.O_TRUNC)},
	{"truncated by name", readOnly, func(fd int, _ string) error { return unix.Truncate(proc(fd), 0) }},
	{"fchmod", readOnly, func(fd int, _ string) error { return unix.Fchmod(fd, 0o6777) }},
	{"chmod by name", readOnly, func(fd int, _ string) error { return unix.Chmod(proc(fd), 0o6777) }},
	{"fchown", readOnly, func(fd int, _ string) error { return unix.Fchown(fd, unix.Getuid(), unix.Getgid()) }},
	{"futimens", readOnly, func(fd int, _ string) error {
		return unix.UtimesNanoAt(fd, "", make([]unix.Timespec, 2), unix.AT_EMPTY_PATH)
	}},
	{"utimes by name", readOnly, func(fd int, _ string) error {
		return unix.UtimesNanoAt(unix.AT_FDCWD, proc(fd), make([]unix.Timespec, 2), 0)
	}},
	{"fsetxattr", readOnly, func(fd int, _ string) error { return unix.Fsetxattr(fd, "user.nfsbox", []byte("x"), 0) }},
	{"setxattr by name", readOnly, func(fd int, _ string) error {
		return unix.Setxattr(proc(fd), "user.nfsbox", []byte("x"), 0)
	}},
	{"chattr", []unix.Errno{unix.EROFS, unix.ENOTTY}, func(fd int, _ string) error {
		return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, unix.STATX_ATTR_NODUMP)
	}},
	{"link", another, func(fd int, attic string) error {
		return unix.Linkat(fd, "", unix.AT_FDCWD, filepath.Join(attic, strconv.Itoa(unix.Getpid())), unix.AT_EMPTY_PATH)
	}},
	{"link by name", another, func(fd int, attic string) error {
		return unix.Linkat(unix.AT_FDCWD, proc(fd), unix.AT_FDCWD,
			filepath.Join(attic, strconv.Itoa(unix.Getpid())), unix.AT_SYMLINK_FOLLOW)
	}},
	{"write", []unix.Errno{unix.EBADF}, func(fd int, _ string) error {
		_, err := unix.Pwrite(fd, []byte("x"), 0)
		return err
	}},
	{"ftruncate", []unix.Errno{unix.EINVAL}, func(fd int, _ string) error { return unix.Ftruncate(fd, 0) }},
	{"fallocate", []unix.Errno{unix.EBADF}, func(fd int, _ string) error { return unix.Fallocate(fd, 0, 0, 1<<16) }},
	{"mmap", []unix.Errno{unix.EACCES}, func(fd int, _ string) error {
		p, err := unix.Mmap(fd, 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err == nil {
			_ = unix.Munmap(p)
		}
		return err
	}},
	{"a clone of its mount", []unix.Errno{unix.EINVAL, unix.ENOSYS}, func(fd int, _ string) error {
		n, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
		if err == nil {
			_ = unix.Close(n)
		}
		return err
	}},
	{"its mount made writable", []unix.Errno{unix.EINVAL, unix.ENOSYS}, func(fd int, _ string) error {
		return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
	}},
}
