package store

import (
	"errors"
	"io/fs"
	"os"
)

// Disk makes a store's changes to its directory, and reads what its entries have. Its methods may be called
// concurrently. Tests have one that is slow, or full, or loses what was not synced.
type Disk interface {
	Mkdir(name string) error              // for this user alone; fs.ErrExist if it is there
	Create(name string) (*os.File, error) // emptied if it is there, to read and write, for this user alone
	Rename(from, to string) error         // replaces to
	Remove(name string) error             // a file
	SyncDir(name string) error            // makes the names in a directory stable
	Sync(f *os.File) error                // fsync(2)
	Datasync(f *os.File) error            // fdatasync(2)
	ReadAt(f *os.File, p []byte, off int64) (int, error)
	WriteAt(f *os.File, p []byte, off int64) (int, error)
}

// System is the Disk of this host.
type System struct{}

// Mkdir is mkdir(2).
func (System) Mkdir(name string) error { return os.Mkdir(name, 0o700) }

// Create is open(2) with O_CREAT and O_TRUNC.
func (System) Create(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // The directory is this user's alone.
}

// Rename is rename(2).
func (System) Rename(from, to string) error { return os.Rename(from, to) }

// Remove is unlink(2).
func (System) Remove(name string) error { return os.Remove(name) }

// SyncDir is fsync(2) of a directory.
func (System) SyncDir(name string) error {
	d, err := os.Open(name) //nolint:gosec // As above.
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Sync is fsync(2).
func (System) Sync(f *os.File) error { return f.Sync() }

// Datasync is fdatasync(2), where there is that.
func (System) Datasync(f *os.File) error { return datasync(f) }

// ReadAt is pread(2).
func (System) ReadAt(f *os.File, p []byte, off int64) (int, error) { return f.ReadAt(p, off) }

// WriteAt is pwrite(2).
func (System) WriteAt(f *os.File, p []byte, off int64) (int, error) { return f.WriteAt(p, off) }

// mkdir makes a directory unless it is there.
func mkdir(d Disk, name string) error {
	if err := d.Mkdir(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// replace writes a file so that it has either its old or its new contents. With sync that holds when the system
// crashes, too.
func replace(d Disk, name string, b []byte, sync bool) error {
	f, err := d.Create(name + ".new")
	if err != nil {
		return err
	}
	_, err = d.WriteAt(f, b, 0)
	if err == nil && sync {
		err = d.Sync(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return d.Rename(name+".new", name)
}
