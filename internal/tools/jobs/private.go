package jobs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nfsbox/nfsbox/internal/tools/job"
)

// ErrForeign says that another user has made a record, or may have changed it. What it says is not done: it
// would be that user's command, with the rights of this one.
var ErrForeign = errors.New("refused, as it may be another user's")

// namesAtOnce is how many names of a record's directory are looked at, at a time.
const namesAtOnce = 256

// Private returns an error that Is ErrForeign unless the record's directory dir and its files are this user's,
// and no other may write to them. It asks the directory that was opened, first. Nobody else can exchange its
// files after that.
func Private(dir *os.Root) error {
	f, err := privateDir(dir, false)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // nothing was written
	for {
		list, err := f.Readdirnames(namesAtOnce)
		for _, name := range list {
			if !ofRecord.MatchString(name) {
				continue // it is not read
			}
			info, err := dir.Lstat(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue // a temporary one, of its run
			}
			if err == nil {
				err = ours(info, filepath.Join(dir.Name(), name), false)
			}
			if err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// privateDir is dir, opened, unless it is another user's, or others may write to it. With orRoot it may be
// root's.
func privateDir(dir *os.Root, orRoot bool) (*os.File, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = ours(info, dir.Name(), orRoot)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Read reads a small file of a record's directory, unless it is another user's, or others may write to it.
func Read(dir *os.Root, name string) ([]byte, error) {
	return job.ReadSmall(dir, name, func(info fs.FileInfo) error { return ours(info, filepath.Join(dir.Name(), name), false) })
}

// Unfinished opens the directory with the records of copies without names, and makes it if make is set. It is
// refused as those of Find are.
func (s Store) Unfinished(make bool) (*os.Root, error) { return s.records(unnamedDir, make) }

// records opens the directory of records of a kind, and makes it if make is set. The error Is ErrForeign if it,
// or the one above it, is another user's, who is not root, or others may write to it.
func (s Store) records(kind string, make bool) (*os.Root, error) {
	if make {
		if err := os.MkdirAll(string(s), 0o700); err != nil {
			return nil, err
		}
	}
	state, err := os.OpenRoot(string(s))
	if err != nil {
		return nil, err
	}
	defer func() { _ = state.Close() }() // nothing was written
	f, err := privateDir(state, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	if make {
		if err := state.Mkdir(kind, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	all, err := state.OpenRoot(kind)
	if err != nil {
		return nil, err
	}
	own, err := privateDir(all, true)
	if err != nil {
		return nil, errors.Join(err, all.Close())
	}
	return all, own.Close()
}
