package mounter

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/fusefs"
	"github.com/nfsbox/nfsbox/internal/tools/mountopt"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/vfs"
)

// Parse reads SPEC and the lists behind -o, as [mountopt.Parse] and, for the place of a snapshot, [mountopt.Snapshot] do. What is wrong
// with them is an error of the arguments.
func Parse(spec string, lists ...string) (*mountopt.Mount, error) {
	store, name, path, ok := place.Divide(place.Meant(spec))
	if !ok {
		return mountopt.Parse(spec, lists...)
	}
	if !place.IsURL(store) {
		abs, err := filepath.Abs(store) // the process in the background is elsewhere
		if err != nil {
			return nil, err
		}
		store = abs
	}
	rest := name
	if path != "" {
		rest += "/" + path
	}
	snap, err := mountopt.Snapshot(spec, store, rest, lists...)
	if strings.HasPrefix(store, "nfs://") {
		// A server may have a directory of that very name, which wins.
		if m, err2 := mountopt.Parse(spec, lists...); err2 == nil {
			m.Else = snap
			return m, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return snap, snap.Refused
}

// trySnapshot opens a snapshot.
func (o *Options) trySnapshot(ctx context.Context) (*place.Place, error) {
	if err := o.Mount.Refused; err != nil {
		return nil, usage{error: err}
	}
	return place.Open(ctx, o.Mount.URL, place.Options{Dial: o.Dial, Silent: o.Silent, Note: o.Note})
}

// top is the file system to mount: of a snapshot what is below PATH. What is in a store can be read by whoever can read the
// store. So a mount for one user alone shows all of it, and that for others what the snapshot's modes and lists let each see.
func (o *Options) top(ctx context.Context, p *place.Place, opt *fusefs.Options) (vfs.FS, error) {
	if !o.Mount.Snapshot {
		return p.FS, nil
	}
	opt.Fixed = !opt.AllowOther
	r, err := p.Resolve(ctx, true)
	if err == nil && r.Attr.Type != vfs.TypeDir {
		err = &os.PathError{Op: "mount", Path: p.Text, Err: vfs.ErrNotDir}
	}
	return rooted{p.FS, r.Handle}, err
}

// rooted is a file system whose root is a directory below that of another one.
type rooted struct {
	vfs.FS
	root vfs.Handle
}

// As implements vfs.FS.
func (r rooted) As(c *vfs.Caller) vfs.FS { return rooted{r.FS.As(c), r.root} }

// Root implements vfs.FS.
func (r rooted) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) {
	a, err := r.GetAttr(ctx, r.root, vfs.MaskV3)
	return r.root, a, err
}

// Lookup implements vfs.FS.
func (r rooted) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, attr, dirAttr vfs.Attr, err error) {
	if dir == r.root && name == ".." {
		h, attr, err = r.Root(ctx)
		return h, attr, attr, err
	}
	return r.FS.Lookup(ctx, dir, name)
}

// Unwrap implements vfs.Unwrapper.
func (r rooted) Unwrap() any { return r.FS }
