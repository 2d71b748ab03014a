//go:build !linux

package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

func lockFile(*os.File) error { return errors.ErrUnsupported }

func owner(fs.FileInfo) (uid int, ok bool) { return 0, false }

func blocksOf(info fs.FileInfo) uint32 { return uint32((info.Size() + block - 1) / block) }

func lookAt(d *os.File, name string) (regular bool, blocks uint32, err error) {
	info, err := os.Lstat(filepath.Join(d.Name(), name))
	if err != nil {
		return false, 0, err
	}
	return info.Mode().IsRegular(), blocksOf(info), nil
}

func spaceOf(string) (Space, error) { return Space{}, errors.ErrUnsupported }

func datasync(f *os.File) error { return f.Sync() }
