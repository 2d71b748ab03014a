package place

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/dir"
)

// markerName is the file by which a directory is a store.
const markerName = ".nfsbox-store"

// ErrNoStore marks the error of a place at which there is no store, and where one could be made.
var ErrNoStore = errors.New("no store")

// noStoreError is an ErrNoStore, and an ErrUsage.
type noStoreError struct{ error }

func (e noStoreError) Is(target error) bool { return target == ErrNoStore }
func (e noStoreError) Unwrap() error        { return e.error }

// StoreOptions say how to open a store. The zero value reads one that is there.
type StoreOptions struct {
	// Write opens the store for changes, and makes it where there is none: of an empty directory, or of a name
	// in a directory that is there.
	Write bool
	// Existing makes no store. It has a meaning with Write alone.
	Existing bool
	// Dial is further options for stores of servers.
	Dial []nfsbox.Option
}

// Store is an open store of objects. The caller closes it.
type Store struct {
	object.Store
	Text  string // the argument, for messages
	Fresh bool   // opening it has made it
}

// OpenStore opens the store that arg names. Without StoreOptions.Write it makes and changes nothing, and is let in
// beside a writer. Errors are ErrUsage if there is no store, or it cannot be one, and ErrUnreachable if it could
// not be asked, or another process has it. They say what to do.
func OpenStore(ctx context.Context, arg string, o StoreOptions) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch {
	case arg == "":
		return nil, fmt.Errorf("an empty argument is %w: give the directory of a store", ErrUsage)
	case IsURL(arg):
		scheme, _, _ := strings.Cut(arg, "://")
		return nil, fmt.Errorf("a store at %s:// is %w that this version knows: give a directory", scheme, ErrUsage)
	}
	return openStoreDir(arg, o)
}

// openStoreDir opens a store in a directory of this host.
func openStoreDir(path string, o StoreOptions) (*Store, error) {
	fresh, err := newStoreDir(path, o)
	if err != nil {
		return nil, err
	}
	s, err := dir.Open(path, dir.Options{Create: fresh, ReadOnly: !o.Write})
	if err != nil {
		return nil, storeError(path, err)
	}
	return &Store{Store: s, Text: path, Fresh: fresh}, nil
}

// newStoreDir reports whether a store has to be made, and makes its directory.
func newStoreDir(path string, o StoreOptions) (fresh bool, err error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir():
		return false, fmt.Errorf("%s is %w of a store: it is no directory", path, ErrUsage)
	case err == nil:
		if _, err = os.Lstat(filepath.Join(path, markerName)); err == nil {
			return false, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
			if !o.Write || o.Existing {
				err = noStoreError{fmt.Errorf("%s is %w of a store: there is no %s in it", path, ErrUsage, markerName)}
			}
			return true, err
		}
	case !errors.Is(err, fs.ErrNotExist):
	case !o.Write || o.Existing:
		return false, noStoreError{fmt.Errorf("%s is %w of a store: there is no such directory; see that its disk is mounted", path, ErrUsage)}
	default:
		if err = os.Mkdir(path, 0o700); errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("%s is %w of a store: there is no directory %s; see that its disk is mounted, or make it",
				path, ErrUsage, filepath.Dir(filepath.Clean(path)))
		}
		fresh = true
	}
	if err != nil {
		err = storeError(path, err)
	}
	return fresh, err
}

// storeError is the error of a store that could not be opened, with what to do.
func storeError(path string, err error) error {
	advice := ""
	switch errno := syscall.Errno(0); {
	case errors.Is(err, object.ErrBusy):
		advice = "; wait until that has ended"
	case errors.Is(err, syscall.EROFS):
		advice = "; its file system is read-only: mount it with rw"
	case errors.Is(err, fs.ErrPermission):
		advice = "; run this as a user who may use it"
	case !errors.As(err, &errno): // there is something else
		return usageError{fmt.Errorf("%w; give the directory of a store, or an empty one", err)}
	}
	return fmt.Errorf("the store %s %w: %w%s", path, ErrUnreachable, err, advice)
}
