package store

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
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
	return uint32((s.Blocks*512 + block - 1) / block)
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
