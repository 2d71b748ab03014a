package dirfs

import (
	"context"
	"errors"
	"os"

	"github.com/nfsbox/nfsbox/vfs"
)

// Open implements vfs.FS. Denying access to others and reclaiming are ErrNotSupp, as there is
// no state for them. No delegation is given.
func (f *FS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	var o vfs.Opened
	switch {
	case how.Access == 0 || how.Access&^(vfs.ShareRead|vfs.ShareWrite) != 0:
		return nil, o, vfs.ErrInval
	case how.Trunc && how.Access&vfs.ShareWrite == 0:
		return nil, o, vfs.ErrInval
	case how.Deny != 0 || how.Reclaim:
		return nil, o, vfs.ErrNotSupp
	case how.Create != nil && (at.Name == "" || how.Create.Type != vfs.TypeReg):
		return nil, o, vfs.ErrInval
	}
	if err := ctx.Err(); err != nil {
		return nil, o, err
	}
	// First a place among the open files: a call must not wait for one.
	select {
	case f.files <- struct{}{}:
	case <-ctx.Done():
		return nil, o, ctx.Err()
	}
	file, err := f.open(ctx, at, how, &o)
	if err != nil {
		<-f.files
		return nil, o, err
	}
	return f.newFile(file, how.Access, o.Attr.FSID[0]), o, nil
}

// flags are those of open(2).
func flags(access vfs.Share) int {
	switch access {
	case vfs.ShareRead:
		return os.O_RDONLY
	case vfs.ShareWrite:
		return os.O_WRONLY
	}
	return os.O_RDWR
}

func (f *FS) open(ctx context.Context, at vfs.At, how *vfs.OpenHow, o *vfs.Opened) (file *os.File, err error) {
	if err := f.begin(ctx); err != nil {
		return nil, err
	}
	defer f.end()
	var st stat
	switch {
	case how.Create != nil:
		file, err = f.openNew(ctx, at, how, o, &st)
	case at.Name != "":
		file, err = f.openName(at, how, o, &st)
	default:
		o.H = at.H
		file, err = f.openHandle(at.H, how, &st)
	}
	if err != nil {
		return nil, err
	}
	if how.Trunc && st.Size != 0 {
		if err = fail("truncate", file.Truncate(0)); err == nil {
			err = fail("stat", statFile(file, &st))
		}
	}
	o.Attr = st.Attr
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (f *FS) openHandle(h vfs.Handle, how *vfs.OpenHow, st *stat) (*os.File, error) {
	_, o, err := f.find(h)
	if err != nil {
		return nil, err
	}
	defer f.leave(o.s)
	file, now, err := o.openFile(flags(how.Access))
	*st = now
	return file, err
}

func (f *FS) openName(at vfs.At, how *vfs.OpenHow, o *vfs.Opened, st *stat) (*os.File, error) {
	if err := checkName(at.Name); err != nil {
		return nil, err
	}
	s, d, err := f.enter(at.Dir)
	if err != nil {
		return nil, err
	}
	defer f.leave(s)
	if s.empty {
		return nil, vfs.ErrNoEnt
	}
	p := place{s: s, dir: d, name: at.Name}
	if err := d.stat(at.Name, &p.st); err != nil {
		return nil, orStale(d, fail("stat", err))
	}
	file, now, err := p.openFile(flags(how.Access))
	*st = now
	if err == nil {
		o.H = f.handleOf(s, at.Name, &now)
	}
	return file, err
}

// openFile opens the regular file that was found, and no other. Devices and pipes are not
// opened, because opening one may have effects.
func (o *place) openFile(flags int) (*os.File, stat, error) {
	var st stat
	switch o.st.Type {
	case vfs.TypeReg:
	case vfs.TypeDir:
		return nil, st, vfs.ErrIsDir
	default:
		return nil, st, vfs.ErrInval
	}
	file, err := o.dir.open(o.name, flags, 0)
	if err != nil {
		return nil, st, notNoEnt(fail("open", err))
	}
	if err = fail("stat", statFile(file, &st)); err == nil && st.id() != o.st.id() {
		err = vfs.ErrStale
	}
	if err != nil {
		return nil, st, errors.Join(err, file.Close())
	}
	return file, st, nil
}
