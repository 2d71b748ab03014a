package memfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// Modes of objects that are created without one.
const (
	defaultFileMode      = 0o644
	defaultDirMode       = 0o755
	defaultLinkMode      = 0o777
	defaultExclusiveMode = 0o600 // until the SetAttr that follows
)

// Create makes an object of any type.
func (f *FS) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	if err := f.begin(ctx, "create", dir); err != nil {
		return vfs.Handle{}, vfs.Attr{}, vfs.WCC{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.getDir(dir)
	if err != nil {
		return vfs.Handle{}, vfs.Attr{}, vfs.WCC{}, err
	}
	pre := d.pre()
	n, _, err := f.create(d, name, how)
	if err != nil {
		return vfs.Handle{}, vfs.Attr{}, f.wcc(d, pre), err
	}
	return f.handle(n), f.attr(n), f.wcc(d, pre), nil
}

// create makes an object in d, or takes the existing one. made is false if it existed. The
// caller holds mu.
func (f *FS) create(d *inode, name string, how *vfs.CreateHow) (n *inode, made bool, err error) {
	if err := vfs.CheckName(name); err != nil {
		return nil, false, err
	}
	if err := how.Check(); err != nil {
		return nil, false, err
	}
	if err := f.may(d, mayExec); err != nil {
		return nil, false, err
	}
	if n := d.dir.lookup(name); n != nil {
		made, err := f.taken(n, how)
		return n, made, err
	}
	if err := f.may(d, mayWrite); err != nil {
		return nil, false, err
	}
	if d.nlink == 0 {
		return nil, false, vfs.ErrStale
	}
	n, err = f.build(d, how)
	if err != nil {
		return nil, false, err
	}
	d.dir.add(name, n)
	f.modified(d, f.now())
	return n, true, nil
}

// taken decides what how means for an existing object of the name. repeated is true if an
// earlier copy of the same call made the object.
func (f *FS) taken(n *inode, how *vfs.CreateHow) (repeated bool, err error) {
	switch {
	case how.Mode == vfs.CreateExclusive && n.exclusive && n.verf == how.Verf:
		return true, nil
	case how.Mode != vfs.CreateUnchecked:
		return false, vfs.ErrExist
	case n.typ == vfs.TypeDir:
		return false, vfs.ErrIsDir
	case n.typ != vfs.TypeReg:
		return false, vfs.ErrExist
	}
	if how.Set.Valid&vfs.MaskSize == 0 {
		return false, nil
	}
	if err := f.mayResize(n, how.Set.Size); err != nil {
		return false, err
	}
	f.resize(n, how.Set.Size, f.now())
	return false, nil
}

// build makes the object, without a name. Everything that can fail does so before it changes anything.
func (f *FS) build(d *inode, how *vfs.CreateHow) (*inode, error) {
	if (how.Type == vfs.TypeBlock || how.Type == vfs.TypeChar) && !f.super() {
		return nil, vfs.ErrPerm
	}
	if uint64(len(f.inodes)) >= f.opt.MaxFiles {
		return nil, vfs.ErrNoSpace
	}
	plan := inode{typ: how.Type, uid: f.uid(), gid: f.gid(), mode: 0o777}
	if d.mode&setGID != 0 {
		plan.gid = d.gid
	}
	set := initial(how)
	if err := f.mayInit(&plan, &set); err != nil {
		return nil, err
	}
	n := f.newInode(how.Type)
	n.uid, n.gid, n.nlink = plan.uid, plan.gid, 1
	f.set(n, &set)
	switch how.Type {
	case vfs.TypeDir:
		n.dir = newDirectory(d)
		n.nlink = 2
		n.mode |= d.mode & setGID // groups are inherited all the way down
		d.nlink++
	case vfs.TypeSymlink:
		n.target, n.mode = how.Target, defaultLinkMode
	case vfs.TypeBlock, vfs.TypeChar:
		n.rdev = how.Rdev
	case vfs.TypeReg:
		n.exclusive, n.verf = how.Mode == vfs.CreateExclusive, how.Verf
	}
	n.inherit(d)
	return n, nil
}

// initial is what is set on the new object: what how says, and a mode in any case.
func initial(how *vfs.CreateHow) vfs.SetAttr {
	set := how.Set
	if how.Mode == vfs.CreateExclusive {
		return vfs.SetAttr{Valid: vfs.MaskMode, Mode: defaultExclusiveMode}
	}
	if set.Valid&vfs.MaskMode == 0 {
		set.Valid |= vfs.MaskMode
		set.Mode = defaultFileMode
		if how.Type == vfs.TypeDir {
			set.Mode = defaultDirMode
		}
	}
	if how.Type == vfs.TypeSymlink {
		set.Valid &^= vfs.MaskMode
	}
	if how.Type != vfs.TypeReg {
		set.Valid &^= vfs.MaskSize
	}
	return set
}

// mayInit is maySet for an object that is to be created: the caller will own it.
func (f *FS) mayInit(plan *inode, set *vfs.SetAttr) error {
	if set.Valid&vfs.MaskSize != 0 && set.Size > MaxFileSize {
		return vfs.ErrFBig
	}
	return f.mayGive(plan, set)
}
