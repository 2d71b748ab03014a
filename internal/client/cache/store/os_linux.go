package store

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockFile locks f, as long as it is open. If another process, or another store of this one, has it
// locked, that is ErrInUse.
func lockFile(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrInUse
	}
	return err
}

// owner is the user whose file it is.
func owner(info fs.FileInfo) (uid int, ok bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(s.Uid), true
}

// blocksOf is what a file takes on the disk, in blocks, rounded up.
func blocksOf(info fs.FileInfo) uint32 {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return uint32((info.Size() + block - 1) / block)
	}
	return blocksIn(s.Blocks)
}

// blocksIn makes blocks of 512 bytes, of which stat(2) tells, the store's.
func blocksIn(n int64) uint32 { return uint32((n*512 + block - 1) / block) }

// lookAt says of a name in d whether it is a regular file, and what that takes on the disk, in blocks. After a
// crash each entry is looked at, and by d the kernel has no path to walk.
func lookAt(d *os.File, name string) (regular bool, blocks uint32, err error) {
	var s unix.Stat_t
	for {
		err = unix.Fstatat(int(d.Fd()), name, &s, unix.AT_SYMLINK_NOFOLLOW)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return false, 0, &os.PathError{Op: "fstatat", Path: name, Err: err}
	}
	return s.Mode&unix.S_IFMT == unix.S_IFREG, blocksIn(s.Blocks), nil
}

// spaceOf asks the disk of a directory.
func spaceOf(dir string) (Space, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return Space{}, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	unit := uint64(max(s.Frsize, 1))
	return Space{Bytes: s.Blocks * unit, FreeBytes: s.Bavail * unit, Files: s.Files, FreeFiles: s.Ffree}, nil
}

// datasync is fdatasync(2).
func datasync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
