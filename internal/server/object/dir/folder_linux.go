package dir

import (
	"container/list"
	"context"
	"errors"
	"path"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// folder is a directory of the store that is open.
type folder struct {
	path string // below the root, "." for the root itself
	fd   int

	// Guarded by folders.mu.
	pins   int
	stable bool // its name, and those above it, survive a crash
	place  *list.Element

	flights
}

// folders is a cache of open directories. Beyond maxFolders, those not in use are closed.
// Its lock is taken before a folder's.
type folders struct {
	mu     sync.Mutex
	m      map[string]*folder
	recent list.List // of *folder, the last one used in front
}

// pin finds an open folder and keeps it open until unpin.
func (c *folders) pin(p string) (f *folder, stable bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f = c.m[p]
	if f == nil {
		return nil, false
	}
	f.pins++
	c.recent.MoveToFront(f.place)
	return f, f.stable
}

func (c *folders) unpin(f *folder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.pins--
}

// add enters fd as the folder p, and pins it. If another call was faster, add closes fd
// and returns that call's folder.
func (c *folders) add(p string, fd int, stable bool) (*folder, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.m[p]; f != nil {
		f.pins++
		f.stable = f.stable || stable
		return f, fail("close", unix.Close(fd))
	}
	f := &folder{path: p, fd: fd, pins: 1, stable: stable}
	f.place = c.recent.PushFront(f)
	c.m[p] = f
	return f, c.shrink()
}

// shrink closes the folders that were not used for longest.
func (c *folders) shrink() error {
	var errs []error
	for e := c.recent.Back(); e != nil && len(c.m) > maxFolders; {
		f := e.Value.(*folder)
		e = e.Prev()
		if f.pins == 0 && !f.unsettled() {
			errs = append(errs, c.drop(f))
		}
	}
	return errors.Join(errs...)
}

func (c *folders) drop(f *folder) error {
	c.recent.Remove(f.place)
	delete(c.m, f.path)
	return fail("close", unix.Close(f.fd))
}

func (c *folders) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.m)
}

func (c *folders) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, f := range c.m {
		errs = append(errs, c.drop(f))
	}
	return errors.Join(errs...)
}

// folder opens a folder step by step from the root, without following symbolic links, and
// pins it. If it does not exist, it is made if create is true, and its name is stable;
// else that is object.ErrNotExist. It recurses object.MaxSegments times at most, since
// the root is always open.
func (s *Store) folder(ctx context.Context, p string, create bool) (*folder, error) {
	known, stable := s.folders.pin(p)
	if known != nil && (stable || !create) {
		return known, nil
	}
	if known != nil {
		defer s.folders.unpin(known)
	}
	parent, err := s.folder(ctx, path.Dir(p), create)
	if err != nil {
		return nil, err
	}
	defer s.folders.unpin(parent)
	fd := -1
	err = s.gated(ctx, Meta, func() (err error) {
		fd, err = s.openIn(parent, path.Base(p), create)
		return err
	})
	if err != nil {
		return nil, err
	}
	if create {
		if err := s.settle(ctx, parent); err != nil {
			return nil, errors.Join(err, fail("close", unix.Close(fd)))
		}
	}
	f, err := s.folders.add(p, fd, create)
	if err != nil {
		s.folders.unpin(f)
		return nil, err
	}
	return f, nil
}

// openIn opens the folder called name in parent.
func (s *Store) openIn(parent *folder, name string, create bool) (int, error) {
	fd, err := openFolder(parent.fd, name)
	if !errors.Is(err, unix.ENOENT) {
		return fd, fail("open", err)
	}
	if !create {
		return -1, object.ErrNotExist
	}
	if err := s.sys.Mkdirat(parent.fd, name, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, fail("mkdir", err)
	}
	fd, err = openFolder(parent.fd, name)
	return fd, fail("open", err)
}
