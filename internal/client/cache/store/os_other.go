//go:build !linux

package store

import (
	"errors"
	"io/fs"
	"os"
)

func lockFile(*os.File) error { return errors.ErrUnsupported }

func owner(fs.FileInfo) (uid int, ok bool) { return 0, false }

func blocksOf(info fs.FileInfo) uint32 { return uint32((info.Size() + block - 1) / block) }

func spaceOf(string) (Space, error) { return Space{}, errors.ErrUnsupported }

func datasync(f *os.File) error { return f.Sync() }
