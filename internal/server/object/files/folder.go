package files

import (
	"context"
	"errors"
	"path"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/layout"
	"github.com/nfsbox/nfsbox/vfs"
)

// folder is a directory of the store.
type folder struct {
	path string // below the root, "." for the root itself
	h    vfs.Handle
	gate gate

	// Guarded by folders.mu.
	lasting bool      // its name, and those above it, survive a crash
	settled time.Time // by the server's clock: names of objects that changed before are stable
}

// folders are the directories that are known.
type folders struct {
	root *folder

	mu sync.Mutex
	m  map[string]*folder
}

// find returns a folder that is known; lasting ones only, if that is asked for.
func (c *folders) find(p string, lasting bool) *folder {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.m[p]
	if p == "." {
		f = c.root
	}
	if f == nil || lasting && !f.lasting {
		return nil
	}
	return f
}

func (c *folders) add(p string, h vfs.Handle, lasting bool) *folder {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.m[p]; f != nil && f.h == h {
		f.lasting = f.lasting || lasting
		return f
	}
	if c.m == nil || len(c.m) >= maxFolders {
		c.m = make(map[string]*folder)
	}
	f := &folder{path: p, h: h, gate: newGate(), lasting: lasting}
	c.m[p] = f
	return f
}

// forget forgets all handles but the root's: one of them has gone.
func (c *folders) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m = nil
}

// isSettled reports whether a name that was changed at a time is stable.
func (c *folders) isSettled(f *folder, ctime time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ctime.Before(f.settled)
}

func (c *folders) settle(f *folder, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.settled = now
}

// in calls do with a folder. If a handle has gone on the way, all are looked up anew.
func (s *Store) in(ctx context.Context, p string, create bool, do func(f *folder) error) error {
	for try := 0; ; try++ {
		f, err := s.folder(ctx, p, create)
		if err == nil {
			err = do(f)
		}
		if try == maxAnew || !gone(err) {
			return err
		}
		s.folders.forget()
	}
}

// folder finds a folder step by step from the root. If it does not exist, it is made if create is
// true, and its name is stable; else that is object.ErrNotExist. It recurses
// object.MaxSegments times at most, since the root is always known.
func (s *Store) folder(ctx context.Context, p string, create bool) (*folder, error) {
	if f := s.folders.find(p, create); f != nil {
		return f, nil
	}
	if create {
		select {
		case s.making <- struct{}{}:
			defer func() { <-s.making }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.step(ctx, p, create)
}

func (s *Store) step(ctx context.Context, p string, create bool) (*folder, error) {
	if f := s.folders.find(p, create); f != nil {
		return f, nil
	}
	parent, err := s.step(ctx, path.Dir(p), create)
	if err != nil {
		return nil, err
	}
	h, a, err := s.lookup(ctx, parent, path.Base(p))
	made := false
	if errors.Is(err, vfs.ErrNoEnt) {
		if !create {
			return nil, object.ErrNotExist
		}
		h, a, made, err = s.mkdir(ctx, parent, path.Base(p))
	}
	switch {
	case err != nil:
		return nil, err
	case a.Type != vfs.TypeDir:
		return nil, foreign(p, "a "+a.Type.String())
	case create && made:
		err = s.sync(ctx, parent)
	case create: // by another host, perhaps just now
		err = s.settle(ctx, parent)
	}
	if err != nil {
		return nil, err
	}
	return s.folders.add(p, h, create), nil
}

// mkdir makes a directory, or finds the one that another host has made meanwhile.
func (s *Store) mkdir(ctx context.Context, parent *folder, name string) (h vfs.Handle, a vfs.Attr, made bool, err error) {
	how := vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o700}}
	for range maxTries {
		h, a, _, err = s.fs.Create(ctx, parent.h, name, &how)
		if err == nil {
			a.Type = vfs.TypeDir
			return h, a, true, nil
		}
		if !errors.Is(err, vfs.ErrExist) && !unsure(err) {
			break
		}
		h, a, lookErr := s.lookup(ctx, parent, name)
		if !errors.Is(lookErr, vfs.ErrNoEnt) {
			return h, a, false, lookErr
		}
	}
	return h, a, false, fail("mkdir", err)
}

// looked are the attributes that a look needs.
const looked = vfs.MaskType | vfs.MaskSize | vfs.MaskMtime | vfs.MaskCtime | vfs.MaskFileID | vfs.MaskFSID

// lookup finds a name in a folder, with its attributes. That there is none is vfs.ErrNoEnt.
func (s *Store) lookup(ctx context.Context, f *folder, name string) (vfs.Handle, vfs.Attr, error) {
	h, a, _, err := s.looks.Lookup(ctx, f.h, name)
	if err == nil && !a.Has(looked) {
		a, err = s.looks.GetAttr(ctx, h, looked)
	}
	return h, a, fail("lookup of "+layout.Join(f.path, name), err)
}

// sync makes this process's own changes of names in f stable, where the file system leaves
// that to its caller.
func (s *Store) sync(ctx context.Context, f *folder) error {
	if s.syncer == nil {
		return nil
	}
	return fail("sync", s.syncer.Sync(ctx, f.h))
}

// settle makes stable all that has happened to names in f before the call, on whatever host: a
// change of the directory's own has to be stable, with what was there before it.
func (s *Store) settle(ctx context.Context, f *folder) error {
	if s.o.ReadOnly {
		return nil
	}
	wcc, err := s.fs.SetAttr(ctx, f.h, &vfs.SetAttr{Valid: vfs.MaskMtime, MtimeNow: true}, nil)
	if err != nil {
		return fail("setattr of "+f.path, err)
	}
	if !wcc.After.Has(vfs.MaskCtime) {
		if wcc.After, err = s.looks.GetAttr(ctx, f.h, vfs.MaskCtime); err != nil {
			return fail("getattr", err)
		}
	}
	if err := s.sync(ctx, f); err != nil {
		return err
	}
	s.folders.settle(f, wcc.After.Ctime)
	return nil
}

// settleName makes stable that f has an object, whose attributes are a.
func (s *Store) settleName(ctx context.Context, f *folder, a *vfs.Attr) error {
	if s.o.ReadOnly || a.Has(vfs.MaskCtime) && s.folders.isSettled(f, a.Ctime) {
		return nil
	}
	return s.settle(ctx, f)
}
