package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/nfsbox/nfsbox/internal/tools/hands"
	"github.com/nfsbox/nfsbox/internal/tools/hands/wire"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/vfs"
)

// maxDirs is how many directories of a tree are known by their paths, about 300 bytes each. At the
// bound all are forgotten.
const maxDirs = 4096

// errNoDir says that a path does not lead to a directory.
var errNoDir = errors.New("it is no directory, and links are not followed")

// tree is a job's tree on a server. What lies in it is found by names alone, from the place that the
// worker may touch: so nothing else is.
type tree struct {
	fs    vfs.FS
	at    *place.Place
	root  directory // the place that the worker may touch
	below []string  // the names from there to the tree's root

	mu    sync.Mutex
	known map[string]directory // by path below the allowed place
}

// directory is one that was found by its path.
type directory struct {
	handle vfs.Handle
	attr   vfs.Attr
}

// Open opens a place that a worker may touch. Tests have others.
type Open func(ctx context.Context, arg string) (*place.Place, error)

// openTree opens the tree that a job has at p, if that is allowed. The caller closes it.
func openTree(ctx context.Context, open Open, all []Allowed, p *hands.Place) (*tree, error) {
	allowed, names, err := find(all, p)
	if err != nil {
		return nil, err
	}
	at, err := open(ctx, allowed.arg)
	if err != nil {
		return nil, err
	}
	r, err := at.Resolve(ctx, true)
	if err == nil && r.Attr.Type != vfs.TypeDir {
		err = fmt.Errorf("%s: %w", allowed.arg, vfs.ErrNotDir)
	}
	if err != nil {
		return nil, errors.Join(err, at.Close())
	}
	t := &tree{fs: at.FS, at: at, root: directory{r.Handle, r.Attr}, below: names}
	t.forget()
	return t, nil
}

func (t *tree) close() error {
	if t == nil || t.at == nil {
		return nil
	}
	return t.at.Close()
}

func (t *tree) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = make(map[string]directory)
}

// dir finds a directory of the tree by the names that lead to it. One that is known and gone is looked
// for once more. is is what it should be.
func (t *tree) dir(ctx context.Context, path [][]byte, is *wire.Identity) (vfs.Handle, error) {
	names := append(make([]string, 0, len(t.below)+len(path)), t.below...)
	for _, name := range path {
		if err := vfs.CheckName(string(name)); err != nil {
			return vfs.Handle{}, fmt.Errorf("name %q in a path: %w", name, err)
		}
		names = append(names, string(name))
	}
	d, err := t.find(ctx, names)
	if errors.Is(err, vfs.ErrStale) || errors.Is(err, vfs.ErrNoEnt) || errors.Is(err, vfs.ErrNotDir) || err == nil && !is.Is(&d.attr) {
		t.forget()
		d, err = t.find(ctx, names)
	}
	if err == nil && !is.Is(&d.attr) {
		err = errors.New("another directory is there by now")
	}
	return d.handle, err
}

// find is dir without a second look.
func (t *tree) find(ctx context.Context, names []string) (d directory, err error) {
	if len(names) == 0 {
		return t.root, nil
	}
	key := strings.Join(names, "/")
	t.mu.Lock()
	d, ok := t.known[key]
	t.mu.Unlock()
	if ok {
		return d, nil
	}
	up, err := t.find(ctx, names[:len(names)-1])
	if err != nil {
		return d, err
	}
	d.handle, d.attr, err = lookup(ctx, t.fs, up.handle, names[len(names)-1])
	if err != nil {
		return d, fmt.Errorf("/%s: %w", key, err)
	}
	if d.attr.Type != vfs.TypeDir {
		return d, fmt.Errorf("/%s: %w", key, errNoDir)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= maxDirs {
		clear(t.known)
	}
	t.known[key] = d
	return d, nil
}

// lookup finds a name, with all attributes. It follows no link.
func lookup(ctx context.Context, f vfs.FS, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, error) {
	h, a, _, err := f.Lookup(ctx, dir, name)
	if err == nil && !a.Has(vfs.MaskV3) {
		a, err = f.GetAttr(ctx, h, vfs.MaskV3)
	}
	return h, a, err
}
