package fileapi

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// kernelSys is the kernel, below a disk that forgets. Syncs are left out: nothing is at
// stake below it.
type kernelSys struct{}

func again(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func fdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

func (kernelSys) Openat(dirfd int, name string, flags int, mode uint32) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = unix.Openat(dirfd, name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, mode)
		return err
	})
	return fd, err
}
func (kernelSys) Mkdirat(dirfd int, name string, mode uint32) error {
	return unix.Mkdirat(dirfd, name, mode)
}
func (kernelSys) Symlinkat(target string, dirfd int, name string) error {
	return unix.Symlinkat(target, dirfd, name)
}
func (kernelSys) Mknodat(dirfd int, name string, mode uint32, dev uint64) error {
	return unix.Mknodat(dirfd, name, mode, int(dev))
}
func (kernelSys) Linkat(fromfd, dirfd int, name string) error {
	return unix.Linkat(unix.AT_FDCWD, fdPath(fromfd), dirfd, name, unix.AT_SYMLINK_FOLLOW)
}
func (kernelSys) Unlinkat(dirfd int, name string, flags int) error {
	return unix.Unlinkat(dirfd, name, flags)
}
func (kernelSys) Renameat(fromfd int, from string, tofd int, to string) error {
	return unix.Renameat(fromfd, from, tofd, to)
}
func (kernelSys) Pwrite(fd int, p []byte, off int64) (n int, err error) {
	err = again(func() (err error) { n, err = unix.Pwrite(fd, p, off); return err })
	return max(n, 0), err
}
func (kernelSys) Ftruncate(fd int, size int64) error {
	return again(func() error { return unix.Ftruncate(fd, size) })
}
func (kernelSys) Fallocate(fd int, mode uint32, off, n int64) error {
	return again(func() error { return unix.Fallocate(fd, mode, off, n) })
}
func (kernelSys) Fchmod(fd int, mode uint32) error { return unix.Chmod(fdPath(fd), mode) }
func (kernelSys) Fchown(fd, uid, gid int) error {
	return unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH)
}
func (kernelSys) Futimens(fd int, as, an, ms, mn int64) error {
	return unix.UtimesNanoAt(fd, "", []unix.Timespec{{Sec: as, Nsec: an}, {Sec: ms, Nsec: mn}}, unix.AT_EMPTY_PATH)
}
func (kernelSys) Fdatasync(int) error { return nil }
func (kernelSys) Fsync(int) error     { return nil }
func (kernelSys) Syncfs(int) error    { return nil }
