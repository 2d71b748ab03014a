//go:build linux || darwin

package dirfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// dirsArePaths says whether open directories are only paths, which renames above break. Here
// they are descriptors.
const dirsArePaths = false

// hostDir is an open directory.
type hostDir struct{ fd int }

func openDir(at int, name string, flags int) (*hostDir, error) {
	d := &hostDir{-1}
	err := again(func() (err error) {
		d.fd, err = unix.Openat(at, name, dirFlags|unix.O_DIRECTORY|unix.O_CLOEXEC|flags, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// again repeats f while a signal interrupts it: the Go runtime's own signals make EINTR
// common on some file systems.
func again(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// checkName is vfs.CheckName and the host's own rules for names.
func checkName(name string) error { return vfs.CheckName(name) }

// openTop opens the root, following links.
func openTop(path string) (*hostDir, error) { return openDir(unix.AT_FDCWD, path, 0) }

// sub opens the directory name in d. A link is an error.
func (d *hostDir) sub(name string) (*hostDir, error) { return openDir(d.fd, name, unix.O_NOFOLLOW) }

// up opens the directory that d is in now.
func (d *hostDir) up() (*hostDir, error) { return openDir(d.fd, "..", unix.O_NOFOLLOW) }

func (d *hostDir) close() { _ = unix.Close(d.fd) } // nothing was written by it

// stat fills st with the attributes of name in d; a link is not followed.
func (d *hostDir) stat(name string, st *stat) error { return statAt(d.fd, name, st) }

// open opens name in d, without following a link and without blocking on a pipe, which a file that it makes cannot be.
func (d *hostDir) open(name string, flags int, mode uint32) (*os.File, error) {
	fd, made := -1, flags&unix.O_EXCL != 0
	if flags |= unix.O_NOFOLLOW | unix.O_NOCTTY | unix.O_CLOEXEC; !made {
		flags |= unix.O_NONBLOCK
	}
	err := again(func() (err error) {
		fd, err = unix.Openat(d.fd, name, flags, mode)
		return err
	})
	if err != nil {
		return nil, err
	}
	if !made {
		// O_NONBLOCK has no effect on regular files; without it os.File does not use the poller.
		if err := unix.SetNonblock(fd, false); err != nil {
			return nil, errors.Join(err, unix.Close(fd))
		}
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (d *hostDir) mkdir(name string, mode uint32) error {
	return again(func() error { return unix.Mkdirat(d.fd, name, mode&0o1777) })
}

func (d *hostDir) symlink(target, name string) error {
	return again(func() error { return unix.Symlinkat(target, d.fd, name) })
}

func (d *hostDir) rename(name string, to *hostDir, toName string) error {
	return again(func() error { return unix.Renameat(d.fd, name, to.fd, toName) })
}

func (d *hostDir) unlink(name string, isDir bool) error {
	flags := 0
	if isDir {
		flags = unix.AT_REMOVEDIR
	}
	return again(func() error { return unix.Unlinkat(d.fd, name, flags) })
}

// readable opens d again, for reading or syncing.
func (d *hostDir) readable() (int, error) {
	fd := -1
	err := again(func() (err error) {
		fd, err = unix.Openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// syncBy opens a file to be synced.
const syncBy = os.O_RDONLY

// sync makes the names in d stable.
func (d *hostDir) sync() error {
	fd, err := d.readable()
	if err != nil {
		return err
	}
	err = again(func() error { return unix.Fsync(fd) })
	return errors.Join(err, unix.Close(fd))
}

// readlinkAt reads the target of a link.
func readlinkAt(fd int, name string) (string, error) {
	buf := make([]byte, vfs.MaxPath+1)
	var n int
	err := again(func() (err error) {
		n, err = unix.Readlinkat(fd, name, buf)
		return err
	})
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// typeOf is the type in a mode.
func typeOf(mode uint32) vfs.Type {
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

// timespecs are set's times in the form of utimensat(2).
func timespecs(set *vfs.SetAttr) ([]unix.Timespec, error) {
	ts := make([]unix.Timespec, 2)
	for i, x := range [...]struct {
		valid, now bool
		sec        int64
		nsec       int
	}{
		{set.Valid&vfs.MaskAtime != 0, set.AtimeNow, set.Atime.Unix(), set.Atime.Nanosecond()},
		{set.Valid&vfs.MaskMtime != 0, set.MtimeNow, set.Mtime.Unix(), set.Mtime.Nanosecond()},
	} {
		nsec := int64(x.nsec)
		switch {
		case !x.valid:
			x.sec, nsec = 0, utimeOmit
		case x.now:
			x.sec, nsec = 0, utimeNow
		}
		if !setInt(&ts[i].Sec, x.sec) || !setInt(&ts[i].Nsec, nsec) {
			return nil, vfs.ErrInval // 32-bit machines
		}
	}
	return ts, nil
}

// setInt sets *p to v and reports whether it fits.
func setInt[T int32 | int64](p *T, v int64) bool {
	*p = T(v)
	return int64(*p) == v
}
