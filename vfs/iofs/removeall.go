package iofs

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// removeBatch is how many entries RemoveAll lists before it removes them. It
	// holds so many for each directory on its way down.
	removeBatch = 256

	// removeWorkers bounds the files that RemoveAll removes at once.
	removeWorkers = 8

	// removeDepth bounds how deep RemoveAll goes: deeper than any path can name.
	// Deeper is vfs.ErrNameTooLong.
	removeDepth = vfs.MaxPath/2 + 1

	// removeRounds bounds how often RemoveAll lists a directory that is not empty
	// although all that was listed is removed: other programs add to it. At the
	// bound that is vfs.ErrNotEmpty.
	removeRounds = 3
)

// RemoveAll removes name and, if it is a directory, all that is in it, also names
// that are not UTF-8. Links are removed, not followed. It goes on after an error, and
// returns the first. It is no error if there is no such name.
func (f *FS) RemoveAll(name string) error {
	err := f.at("removeall", name, parent, func(w *walker) error {
		at, err := f.lookup(w.last.dir, w.last.name)
		if err != nil {
			return err
		}
		defer f.memory.forget(w.last.dir, w.last.name) // no path leads to what was below it
		return f.removeTree(w.last, at, 0)
	})
	if errors.Is(err, vfs.ErrNoEnt) {
		return nil
	}
	return err
}

// removeTree removes what is at a place, and all below it.
func (f *FS) removeTree(where place, at found, depth int) (err error) {
	if at.attr.Type != vfs.TypeDir {
		return gone(f.remove(where, false))
	}
	if depth >= removeDepth {
		return fmt.Errorf("directories nested more than %d deep: %w", removeDepth, vfs.ErrNameTooLong)
	}
	for range removeRounds {
		if err := f.empty(at.handle, depth); err != nil {
			return err
		}
		if err = gone(f.remove(where, true)); !errors.Is(err, vfs.ErrNotEmpty) {
			break
		}
	}
	return err
}

// gone is err, or nil if err says that there is nothing to remove.
func gone(err error) error {
	if errors.Is(err, vfs.ErrNoEnt) {
		return nil
	}
	return err
}

// victim is an entry that is to be removed.
type victim struct {
	name  string
	found found
}

// empty removes all entries of a directory, and goes on for as long as there are
// any: a program that adds more than it removes keeps it busy until the context ends.
func (f *FS) empty(dir vfs.Handle, depth int) (first error) {
	var pos vfs.Pos
	for {
		batch, next, err := f.victims(dir, pos)
		if errors.Is(err, vfs.ErrBadCookie) && first == nil && pos != (vfs.Pos{}) {
			pos = vfs.Pos{} // some servers forget cookies when the directory changes
			continue
		}
		if err != nil {
			return firstOf(first, gone(err))
		}
		if len(batch) == 0 {
			return first
		}
		first = firstOf(first, f.removeEach(dir, batch, depth))
		if err := f.ctx.Err(); err != nil {
			return firstOf(first, err)
		}
		if first != nil && next.Cookie == pos.Cookie {
			return first // from there the same entries would come again
		}
		pos = next
	}
}

// victims lists the next entries.
func (f *FS) victims(dir vfs.Handle, from vfs.Pos) (batch []victim, next vfs.Pos, err error) {
	for e, err := range f.fs.ReadDir(f.ctx, dir, from, vfs.MaskType|vfs.MaskHandle, 0) {
		if err != nil {
			return nil, next, err
		}
		v := victim{string(e.Name), found{handle: e.Handle, attr: e.Attr}}
		next = e.Next
		if vfs.CheckName(v.name) != nil {
			continue // no call can name it; the directory will stay not empty
		}
		if batch = append(batch, v); len(batch) == removeBatch {
			break
		}
	}
	return batch, next, nil
}

// removeEach removes entries: files in parallel, then directories one by one.
func (f *FS) removeEach(dir vfs.Handle, batch []victim, depth int) error {
	var (
		files sync.WaitGroup
		mu    sync.Mutex
		first error
		taken atomic.Int64
	)
	for range min(removeWorkers, len(batch)) {
		files.Go(func() {
			for i := taken.Add(1) - 1; i < int64(len(batch)); i = taken.Add(1) - 1 {
				err := f.removeFile(dir, &batch[i])
				mu.Lock()
				first = firstOf(first, err)
				mu.Unlock()
			}
		})
	}
	files.Wait()
	for i := range batch {
		v := &batch[i]
		if v.found.attr.Type == vfs.TypeDir {
			first = firstOf(first, f.removeTree(place{dir, v.name}, v.found, depth+1))
		}
	}
	return first
}

// removeFile removes v if it is no directory. It looks v up first if the listing did
// not say what it is.
func (f *FS) removeFile(dir vfs.Handle, v *victim) (err error) {
	if !v.found.attr.Has(vfs.MaskType) || v.found.handle.IsZero() {
		if v.found, err = f.lookup(dir, v.name); err != nil {
			return gone(err)
		}
	}
	if v.found.attr.Type == vfs.TypeDir {
		return nil
	}
	return gone(f.remove(place{dir, v.name}, false))
}
