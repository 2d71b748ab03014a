package place

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nfsbox/nfsbox/internal/server/object/dir"
	"github.com/nfsbox/nfsbox/internal/server/object/layout"
)

// openStoreDir opens a store in a directory of this host.
func openStoreDir(ctx context.Context, path string, o StoreOptions) (*Store, error) {
	fresh, err := newStoreDir(path, o)
	if err != nil {
		return nil, err
	}
	s, err := dir.Open(path, dir.Options{Create: fresh, ReadOnly: !o.Write, Alone: o.Write && o.Alone})
	if err != nil {
		return nil, storeError(path, err)
	}
	at, err := attrOf(ctx, path)
	if err != nil {
		return nil, errors.Join(storeError(path, err), s.Close())
	}
	return &Store{Store: s, Text: path, Fresh: fresh, Dir: at}, nil
}

// newStoreDir reports whether a store has to be made, and makes its directory.
func newStoreDir(path string, o StoreOptions) (fresh bool, err error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir():
		return false, noStoreDir(path)
	case err == nil:
		if _, err = os.Lstat(filepath.Join(path, layout.MarkerName)); err == nil {
			return false, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			if !o.makes() {
				return false, &noStoreError{path, noMarker}
			}
			return true, nil
		}
	case !errors.Is(err, fs.ErrNotExist):
	case !o.makes():
		return false, &noStoreError{path, noDirectory}
	default:
		if err = os.Mkdir(path, 0o700); errors.Is(err, fs.ErrNotExist) {
			return false, &noStoreError{path, "there is no directory " + filepath.Dir(filepath.Clean(path)) + "; see that its disk is mounted, or make it"}
		}
		fresh = true
	}
	if err != nil {
		err = storeError(path, err)
	}
	return fresh, err
}

// noStoreDir is the error of a store that is a file, or the like.
func noStoreDir(arg string) error {
	return fmt.Errorf("%s is %w of a store: it is no directory", arg, ErrUsage)
}
