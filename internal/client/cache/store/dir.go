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

	"github.com/nfsbox/nfsbox/internal/base/way"
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

const noCache = "there is no cache of nfsbox"

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
			"chmod go-w it, or use another", octal(info.Mode()))}
	}
	return reached(dir, info)
}

// octal is a mode as chmod(1) takes it, with the bit of a sticky directory.
func octal(m fs.FileMode) fs.FileMode {
	if m&fs.ModeSticky != 0 {
		return m.Perm() | 0o1000
	}
	return m.Perm()
}

// reached returns an error if another user could put another directory in the place of dir, by a directory or link on
// the way to it.
func reached(dir string, info fs.FileInfo) error {
	steps, err := way.Of(dir)
	if err != nil {
		return fmt.Errorf("cache directory: %w", err)
	}
	for _, at := range steps {
		if os.SameFile(at.Info, info) {
			continue
		}
		if who, mend := way.ReplacedBy(at, steps[0].Info); who != "" {
			return &DirError{dir, fmt.Sprintf("%s, on the way to it, %s, who could put another one in its place; %s, or use another directory", at.Path, who, mend)}
		}
	}
	return nil
}

// claim checks that dir is a store, and locks it. With a disk it is made if it is not there.
func claim(dir string, disk Disk) (*os.File, error) {
	if disk != nil {
		if err := mkdir(disk, dir); err != nil {
			return nil, fmt.Errorf("cache: %w", err)
		}
	}
	if err := trusted(dir); err != nil {
		return nil, err
	}
	if err := checkHead(dir, disk); err != nil {
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
		if disk == nil {
			break
		}
		if err := mkdir(disk, filepath.Join(dir, d)); err != nil {
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

// checkHead returns an error if dir is not a store that this program knows. With a disk, an empty one becomes one.
func checkHead(dir string, disk Disk) error {
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
	case disk == nil:
		return &DirError{dir, noCache}
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	for _, n := range names {
		if n.Name() != headName && n.Name() != headName+".new" && n.Name() != lockName {
			return &DirError{dir, "it is not a cache of nfsbox, and not empty; remove it, or use another directory"}
		}
	}
	// Without its head what follows would be somebody else's directory after a crash.
	if err := errors.Join(replace(disk, name, head(), true), disk.SyncDir(dir)); err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	return nil
}

// isFull reports whether a disk, or a user's share of it, has no room.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
