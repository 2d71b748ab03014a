package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/vfs"
)

type mvCmd struct {
	Places []string `arg:"" place:"" name:"PLACE" help:"What to move, and last the new name or a directory: nfs://host/export/path, all of one server."`
	verbFlags
}

func (*mvCmd) Help() string {
	return `Gives objects of a server another name, or moves them into a directory, as mv(1) does. Each takes one
RENAME, which atomically replaces what has the name. Of two names of one file the first is removed. Nothing is
moved from one file system to another: copy it with nfsbox cp, and verify the copy. For paths of this host
there is mv(1).

  nfsbox mv nfs://filer/export/a nfs://filer/export/b
  nfsbox mv 'nfs://filer/export/*.log' nfs://filer/export/logs`
}

func (c *mvCmd) Run(e *env) error {
	return c.onto(e, "moved", c.Places, func(p, to *place.Place, toDir vfs.Handle, toName string) error {
		dir, name, err := p.Parent(e.ctx)
		if err != nil {
			return err
		}
		if name == "" {
			return fmt.Errorf("%s is what was mounted, and cannot be moved from within", p.Text)
		}
		if err := dirBehind(e.ctx, p, dir, name); err != nil {
			return err
		}
		if dir == toDir && name == toName {
			return fmt.Errorf("%s has this name already", p.Text)
		}
		_, _, err = p.FS.Rename(e.ctx, dir, name, toDir, toName)
		if err == nil {
			err = dropLink(e.ctx, p.FS, dir, name, toDir, toName)
		}
		return about(p, err)
	})
}

// dropLink removes name after it was renamed to toName, if both are links to one object. RENAME
// leaves both (RFC 1813, section 3.3.14), and mv(1) leaves toName alone. Where a server takes two
// names for one, only one of them is listed, and nothing is removed.
func dropLink(ctx context.Context, f vfs.FS, dir vfs.Handle, name string, toDir vfs.Handle, toName string) error {
	was, err := attrAt(ctx, f, dir, name)
	if errors.Is(err, vfs.ErrNoEnt) {
		return nil
	}
	var is vfs.Attr
	if err == nil {
		is, err = attrAt(ctx, f, toDir, toName)
	}
	const id = vfs.MaskFSID | vfs.MaskFileID
	if err != nil || !was.Has(id) || !is.Has(id) || was.FSID != is.FSID || was.FileID != is.FileID || is.Type == vfs.TypeDir {
		return err // another object has got the name
	}
	for _, at := range [...]struct {
		dir  vfs.Handle
		name string
	}{{dir, name}, {toDir, toName}} {
		if listed, err := isListed(ctx, f, at.dir, at.name); err != nil || !listed {
			return err
		}
	}
	_, err = f.Remove(ctx, dir, name, false)
	return err
}

func attrAt(ctx context.Context, f vfs.FS, dir vfs.Handle, name string) (vfs.Attr, error) {
	h, a, _, err := f.Lookup(ctx, dir, name)
	if err == nil && !a.Has(vfs.MaskV3) {
		a, err = f.GetAttr(ctx, h, vfs.MaskV3)
	}
	return a, err
}

// isListed reports whether dir lists name in just this form.
func isListed(ctx context.Context, f vfs.FS, dir vfs.Handle, name string) (bool, error) {
	for e, err := range f.ReadDir(ctx, dir, vfs.Pos{}, 0, 0) {
		if err != nil || string(e.Name) == name {
			return err == nil, err
		}
	}
	return false, nil
}

// dirBehind is an error if a slash stands behind a name that is not that of a directory. A link is none, as
// rename(2) and symlink(2) have it.
func dirBehind(ctx context.Context, p *place.Place, dir vfs.Handle, name string) error {
	if !place.MeansDir(p.Text) {
		return nil
	}
	a, err := attrAt(ctx, p.FS, dir, name)
	if err == nil && a.Type != vfs.TypeDir {
		err = vfs.ErrNotDir
	}
	return about(p, err)
}
