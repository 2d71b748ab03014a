package v3

import (
	"context"
	"errors"

	"github.com/nfsbox/nfsbox/vfs"
)

// Open opens a regular file. By handle alone it makes no call, so that errors show with the first READ
// or WRITE. By name it is a LOOKUP, or a CREATE, and once more if the object is gone before it can be
// truncated. The server checks rights with each call. With CreateExclusive, attributes in Set are set
// by the SETATTR that RFC 1813, section 3.3.8 requires.
func (f *FS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	if err := f.checkOpen(at, how); err != nil {
		return nil, vfs.Opened{}, err
	}
	if err := ctx.Err(); err != nil {
		return nil, vfs.Opened{}, err
	}
	name := f.openName(at)
	opened, err := f.prepare(ctx, at, how)
	if errors.Is(err, vfs.ErrStale) && opened.H != at.H && at.Name != "" {
		// The name was given to another object in between. The caller means the name.
		opened, err = f.prepare(ctx, at, how)
	}
	if err != nil {
		f.open.drop(name)
		return nil, vfs.Opened{}, err
	}
	f.open.add(opened.H)
	f.open.opened(name, opened.H, opened.Created || opened.Attr.Has(vfs.MaskNlink) && opened.Attr.Nlink == 1)
	return &file{fs: f, h: opened.H, name: name, access: how.Access}, opened, nil
}

// openName registers the name by which at is about to be opened.
func (f *FS) openName(at vfs.At) *openName {
	if at.Name == "" {
		return f.open.nameless()
	}
	return f.open.expect(f.names.folded(&at.Dir, at.Name))
}

// prepare finds, or makes, the object of at, and truncates it if how says so. If a later step fails,
// o has what was found.
func (f *FS) prepare(ctx context.Context, at vfs.At, how *vfs.OpenHow) (o vfs.Opened, err error) {
	o, err = f.locate(ctx, at, how)
	if err == nil {
		err = regular(&o.Attr)
	}
	if err == nil && how.Trunc && !(o.Created && how.Create.Set.Valid&vfs.MaskSize == 0) {
		err = f.setOpened(ctx, &o, &vfs.SetAttr{Valid: vfs.MaskSize})
	}
	return o, err
}

func (f *FS) checkOpen(at vfs.At, how *vfs.OpenHow) error {
	const both = vfs.ShareRead | vfs.ShareWrite
	switch {
	case how.Access == 0 || how.Access&^both != 0:
		return vfs.ErrInval
	case how.Deny != 0:
		return vfs.ErrNotSupp
	case how.Create != nil && (at.Name == "" || how.Create.Type != vfs.TypeReg):
		return vfs.ErrInval
	case f.opt.ReadOnly && (how.Access&vfs.ShareWrite != 0 || how.Create != nil || how.Trunc):
		return vfs.ErrROFS
	case at.Name == "":
		return checkHandle(&at.H)
	}
	return nil
}

// regular returns an error unless a may be the attributes of a regular file.
func regular(a *vfs.Attr) error {
	switch {
	case !a.Has(vfs.MaskType) || a.Type == vfs.TypeReg:
		return nil
	case a.Type == vfs.TypeDir:
		return vfs.ErrIsDir
	}
	return vfs.ErrInval
}

// setOpened is a SETATTR on the object that is being opened.
func (f *FS) setOpened(ctx context.Context, o *vfs.Opened, set *vfs.SetAttr) error {
	wcc, err := f.SetAttr(ctx, o.H, set, nil)
	if err == nil {
		o.Attr = wcc.After
	}
	return err
}

// locate finds, or makes, the object of at.
func (f *FS) locate(ctx context.Context, at vfs.At, how *vfs.OpenHow) (o vfs.Opened, err error) {
	switch {
	case at.Name == "":
		o.H = at.H
	case how.Create == nil:
		o.H, o.Attr, _, err = f.Lookup(ctx, at.Dir, at.Name)
	case how.Create.Mode == vfs.CreateUnchecked:
		return f.createOrTake(ctx, at, how.Create)
	default:
		o.H, o.Attr, o.Dir, err = f.Create(ctx, at.Dir, at.Name, how.Create)
		o.Created = err == nil
		if o.Created && how.Create.Mode == vfs.CreateExclusive && how.Create.Set.Valid != 0 {
			err = f.setOpened(ctx, &o, &how.Create.Set)
		}
	}
	return o, err
}

// createOrTake opens the object of the name, and creates it if there is none. An unchecked CREATE does
// not tell which of the two it did, so it makes a guarded one, and a LOOKUP if the name exists.
func (f *FS) createOrTake(ctx context.Context, at vfs.At, how *vfs.CreateHow) (o vfs.Opened, err error) {
	guarded := *how
	guarded.Mode = vfs.CreateGuarded
	for range maxCreateTries {
		var refused error
		o.H, o.Attr, o.Dir, refused = f.Create(ctx, at.Dir, at.Name, &guarded)
		if refused == nil {
			o.Created = true
			return o, nil
		}
		// A caller without the right to create may still open an existing file.
		exists := errors.Is(refused, vfs.ErrExist)
		if !exists && !errors.Is(refused, vfs.ErrAccess) && !errors.Is(refused, vfs.ErrROFS) {
			return o, refused
		}
		o.H, o.Attr, _, err = f.Lookup(ctx, at.Dir, at.Name)
		switch {
		case err == nil:
			err = f.take(ctx, &o, how)
			return o, err
		case !exists:
			return o, refused
		case !errors.Is(err, vfs.ErrNoEnt):
			return o, err
		}
	}
	return o, vfs.ErrBusy
}

// take changes an existing object as an unchecked CREATE would.
func (f *FS) take(ctx context.Context, o *vfs.Opened, how *vfs.CreateHow) (err error) {
	if !o.Attr.Has(vfs.MaskType) {
		// The server may have left them out. Following a link is up to the caller.
		if o.Attr, err = f.GetAttr(ctx, o.H, vfs.MaskV3); err != nil {
			return err
		}
	}
	switch err := regular(&o.Attr); {
	case errors.Is(err, vfs.ErrIsDir):
		return err
	case err != nil:
		return vfs.ErrExist
	case how.Set.Valid&vfs.MaskSize == 0:
		return nil
	}
	return f.setOpened(ctx, o, &vfs.SetAttr{Valid: vfs.MaskSize, Size: how.Set.Size})
}
