package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// The names in a store's directory.
const (
	headName  = "head"
	lockName  = "lock"
	indexName = "index"
	oldName   = "index.old"
	statsName = "stats"
	dataDir   = "data"
	trashDir  = "trash"
)

const (
	headMagic   = "nfsbox-c"
	headVersion = 1
)

// DirError says why a directory is not used for a cache.
type DirError struct {
	Dir, Why string
}

// Error implements error.
func (e *DirError) Error() string { return "cache directory " + e.Dir + ": " + e.Why }

// own returns an error unless dir is a directory of this process's user to which nobody else may write: what
// is in it becomes the contents of files.
func own(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return &DirError{dir, "it does not exist; make it, for this user alone (mkdir -m 700)"}
		}
		return fmt.Errorf("cache directory: %w", err)
	}
	uid, known := owner(info)
	switch {
	case !info.IsDir():
		return &DirError{dir, "it is not a directory"}
	case known && uid != os.Geteuid():
		return &DirError{dir, fmt.Sprintf("it belongs to user %d, and this is user %d; use a directory of your own", uid, os.Geteuid())}
	case info.Mode().Perm()&0o022 != 0:
		return &DirError{dir, fmt.Sprintf("others may write to it (mode %04o), and so could change what is read; "+
			"chmod go-w it, or use another", info.Mode().Perm())}
	}
	return nil
}

// claim checks that dir is a store, and locks it. With create it is made if it is not there.
func claim(dir string, create bool) (*os.File, error) {
	if create {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("cache: %w", err)
		}
	}
	if err := trusted(dir); err != nil {
		return nil, err
	}
	if err := checkHead(dir, create); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	if err := lockFile(lock); err != nil {
		return nil, errors.Join(fmt.Errorf("cache directory %s: %w", dir, err), lock.Close())
	}
	for _, d := range [...]string{dataDir, trashDir} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.Join(fmt.Errorf("cache: %w", err), lock.Close())
		}
	}
	return lock, nil
}

// trusted returns an error unless dir is a directory of this user alone.
func trusted(dir string) error {
	if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return &DirError{dir, "it is a symbolic link"}
	}
	return own(dir)
}

// errNoFile is what else has the name of a file: a pipe would be waited for.
var errNoFile = errors.New("it is not a regular file")

// openFile opens a regular file for reading.
func openFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errNoFile, err, f.Close())
	}
	return f, nil
}

// readFile reads a regular file of no more than most bytes.
func readFile(name string, most int64) ([]byte, error) {
	f, err := openFile(name)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = errDamaged
	}
	return b, errors.Join(err, f.Close())
}

func head() []byte {
	b := binary.BigEndian.AppendUint32([]byte(headMagic), headVersion)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// checkHead returns an error if dir is not a store that this program knows. With create, an empty one becomes one.
func checkHead(dir string, create bool) error {
	name := filepath.Join(dir, headName)
	b, err := readFile(name, maxSmall)
	switch {
	case err == nil && string(b) == string(head()):
		return nil
	case err == nil && len(b) >= 12 && string(b[:8]) == headMagic && binary.BigEndian.Uint32(b[8:]) != headVersion:
		return &DirError{dir, fmt.Sprintf("another version of nfsbox has made it (format %d, and this knows %d); remove it, or use another directory",
			binary.BigEndian.Uint32(b[8:]), headVersion)}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cache: %w", err)
	case !create:
		return &DirError{dir, "there is no cache of nfsbox"}
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	for _, n := range names {
		if n.Name() != headName && n.Name() != lockName {
			return &DirError{dir, "it is not a cache of nfsbox, and not empty; remove it, or use another directory"}
		}
	}
	return replace(name, head())
}

// replace writes a file so that it has either its old or its new contents, when the system crashes too.
func replace(name string, b []byte) error {
	f, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // As above.
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// syncDir makes the names in dir stable.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // As above.
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// isFull reports whether a disk, or a user's share of it, has no room.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
