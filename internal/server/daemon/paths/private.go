package paths

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// existing is the part of path that is there, without symbolic links.
func existing(path string) (string, error) {
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || filepath.Dir(path) == path {
			return real, err
		}
		path = filepath.Dir(path)
	}
}

// MakePrivate makes dir, or checks that it is private: see [Private]. What it has made
// is on the disk when it returns.
func MakePrivate(dir string) error {
	there, err := existing(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := Private(dir); err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	// A folder that is lost in a crash takes the key along.
	for real != there && filepath.Dir(real) != real {
		real = filepath.Dir(real)
		if err := SyncDir(real); err != nil {
			return err
		}
	}
	return nil
}

// Private is an error unless dir is a folder that belongs to the server's user and that
// nobody else may enter.
func Private(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no directory", dir)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is open to others (mode %04o); make it 0700", dir, info.Mode().Perm())
	case !Owned(info):
		return fmt.Errorf("%s belongs to another user: chown it, or name another state directory with --state-dir", dir)
	}
	return nil
}

// SyncDir puts the names in dir on the disk.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Regular is an error unless path is a regular file, or a link to one. Callers ask
// before they open it: a pipe would never answer, and a device never end.
func Regular(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	return err
}
