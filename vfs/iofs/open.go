package iofs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// knownFlags are those that OpenFile understands.
const knownFlags = os.O_RDONLY | os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREATE | os.O_EXCL | os.O_SYNC | os.O_TRUNC

// OpenFile opens a regular file as os.OpenFile does, links followed. flag is one
// of os.O_RDONLY, O_WRONLY and O_RDWR, with any of these:
//
//   - O_CREATE makes the file if there is none, with the mode perm: there is no
//     umask on this side.
//   - O_EXCL, with O_CREATE: the name must not exist, not even as a link. Of all
//     clients that try, one succeeds, also if replies are lost on the way (an
//     exclusive CREATE, RFC 1813, section 3.3.8).
//   - O_TRUNC empties it.
//   - O_APPEND makes each Write begin at the end of the file, for which it asks
//     the server. NFS cannot do both in one step: what two clients append at the
//     same time may be written over one another. Files of one client of
//     nfsbox.Dial are safe from each other ([vfs.Appender]).
//   - O_SYNC makes each Write return when it is on the server's disk.
//
// Any other flag, and O_TRUNC without the right to write, is vfs.ErrInval. An
// NFSv3 server is not asked whether the file may be read or written: that shows
// with the first Read, and at the latest with Sync or Close.
func (f *FS) OpenFile(name string, flag int, perm fs.FileMode) (file *File, err error) {
	if shares(flag) == 0 || flag&^knownFlags != 0 || flag&os.O_TRUNC != 0 && shares(flag)&vfs.ShareWrite == 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: vfs.ErrInval}
	}
	open := func(w *walker) error {
		at, err := w.described()
		if err != nil {
			return err
		}
		at.name = path.Base(name)
		file, err = f.openFound(name, at, flag)
		return err
	}
	if flag&os.O_CREATE == 0 {
		err = f.at("open", name, object, open)
		return file, err
	}
	create := func(w *walker) error {
		file, err = f.create(name, w.last, flag, perm)
		return err
	}
	err = f.at("open", name, parent, create)
	if flag&os.O_EXCL != 0 || !errors.Is(err, vfs.ErrExist) {
		return file, err
	}
	// A link is in the way: the file is to be where it leads.
	err = f.at("open", name, possible, func(w *walker) error {
		if w.absent {
			return create(w)
		}
		return open(w)
	})
	return file, err
}

// Create opens a file for reading and writing, and creates or empties it. A new file
// has mode 0644: there is no umask here that would take rights from 0666.
func (f *FS) Create(name string) (*File, error) {
	return f.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
}

// shares are the accesses in flag, or 0 if it combines them in an impossible way.
func shares(flag int) vfs.Share {
	switch flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR) {
	case os.O_RDONLY:
		return vfs.ShareRead
	case os.O_WRONLY:
		return vfs.ShareWrite
	case os.O_RDWR:
		return vfs.ShareRead | vfs.ShareWrite
	}
	return 0
}

// openFound opens what a walk has found.
func (f *FS) openFound(name string, at found, flag int) (*File, error) {
	switch at.attr.Type {
	case vfs.TypeReg:
	case vfs.TypeDir:
		return nil, vfs.ErrIsDir
	default:
		return nil, vfs.ErrInval
	}
	how := &vfs.OpenHow{Access: shares(flag), Owner: newOwner(), Trunc: flag&os.O_TRUNC != 0}
	file, opened, err := f.fs.Open(f.ctx, vfs.At{H: at.handle, Label: name}, how)
	if err != nil {
		return nil, err
	}
	if !opened.Attr.Has(needed) && !how.Trunc {
		opened.Attr = at.attr
	}
	return f.newFile(name, file, how, &opened, flag), nil
}

// create opens the file at a place, and creates it if there is none.
func (f *FS) create(name string, at place, flag int, perm fs.FileMode) (*File, error) {
	how := &vfs.OpenHow{Access: shares(flag), Owner: newOwner(), Trunc: flag&os.O_TRUNC != 0, Create: &vfs.CreateHow{
		Type: vfs.TypeReg,
		Mode: vfs.CreateUnchecked,
		Set:  vfs.SetAttr{Valid: vfs.MaskMode, Mode: modeBits(perm)},
	}}
	if flag&os.O_EXCL != 0 {
		return f.createExclusive(name, at, flag, how)
	}
	file, opened, err := f.fs.Open(f.ctx, vfs.At{Dir: at.dir, Name: at.name}, how)
	if err != nil {
		return nil, err
	}
	return f.newFile(name, file, how, &opened, flag), nil
}

// createExclusive creates a file that must not exist. A server may keep the verifier in
// the new file's times, so they are set afterwards, together with the mode.
func (f *FS) createExclusive(name string, at place, flag int, how *vfs.OpenHow) (*File, error) {
	exclusive := vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateExclusive}
	rand.Read(exclusive.Verf[:])
	how.Trunc = false
	set := how.Create.Set
	set.Valid |= vfs.MaskAtime | vfs.MaskMtime
	set.AtimeNow, set.MtimeNow = true, true

	guarded := how.Create
	how.Create = &exclusive
	where := vfs.At{Dir: at.dir, Name: at.name}
	file, opened, err := f.fs.Open(f.ctx, where, how)
	if errors.Is(err, vfs.ErrNotSupp) {
		guarded.Mode = vfs.CreateGuarded
		how.Create = guarded
		if file, opened, err = f.fs.Open(f.ctx, where, how); err == nil {
			return f.newFile(name, file, how, &opened, flag), nil
		}
	}
	if err != nil {
		return nil, err
	}
	wcc, err := f.fs.SetAttr(f.ctx, opened.H, &set, nil)
	if err != nil {
		return nil, errors.Join(err, file.Close(f.ctx), f.undoCreate(at))
	}
	opened.Attr = wcc.After
	return f.newFile(name, file, how, &opened, flag), nil
}

// undoTime bounds the removal of a file that was made and cannot be used.
const undoTime = 10 * time.Second

// undoCreate removes a file that was just created, even if the context has ended: it
// would keep every other program from creating it exclusively.
func (f *FS) undoCreate(at place) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(f.ctx), undoTime)
	defer cancel()
	if _, err := f.fs.Remove(ctx, at.dir, at.name, false); err != nil && !errors.Is(err, vfs.ErrNoEnt) {
		return fmt.Errorf("the new file is left behind: %w", err)
	}
	return nil
}

// newOwner is an owner of locks that no other File is.
func newOwner() (o vfs.Owner) {
	o.N = ownerBytes
	rand.Read(o.ID[:ownerBytes])
	return o
}

// ownerBytes are enough that no two owners are the same.
const ownerBytes = 16

func (f *FS) newFile(name string, file vfs.File, how *vfs.OpenHow, opened *vfs.Opened, flag int) *File {
	o := &File{
		fs:     f,
		file:   file,
		handle: opened.H,
		owner:  how.Owner,
		name:   name,
		access: shares(flag),
		append: flag&os.O_APPEND != 0,
		opened: opened.Attr,

		commits: make(chan struct{}, 1),
	}
	if flag&os.O_SYNC != 0 {
		o.stable = vfs.FileSync
	}
	if opened.Attr.Has(needed) {
		o.toldAt = time.Now()
	}
	return o
}
