// Package disk looks at trees on a disk, and syncs it, for what is measured there.
package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Size counts the objects of a tree, its top among them, and the bytes of its files.
func Size(path string) (objects int, bytes int64, err error) {
	err = filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		objects++
		if e.Type().IsRegular() {
			i, err := e.Info()
			if err != nil {
				return err
			}
			bytes += i.Size()
		}
		return nil
	})
	return objects, bytes, err
}

// Sync is syncfs(2) of the file system that dir lies on.
func Sync(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(d.Fd())), d.Close())
}
