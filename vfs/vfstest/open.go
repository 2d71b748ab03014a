package vfstest

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

var openTests = []test{
	{"by-handle", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		f, opened, err := e.fs.Open(e.ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
		e.ok(err)
		e.closing(f)
		e.same(opened.H, h)
		if opened.Created {
			e.Error("an open by handle says that it has created the file")
		}
		wantBytes(e, e.contentOf(f), "content")
	}},
	{"by-name", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		f, opened, err := e.fs.Open(e.ctx, vfs.At{Dir: e.dir, Name: "file"}, &vfs.OpenHow{Access: vfs.ShareRead})
		e.ok(err)
		e.closing(f)
		e.same(opened.H, h)
		wantBytes(e, e.contentOf(f), "content")
	}},
	{"creates", func(e *env) {
		f, opened, err := e.openName("file", vfs.CreateGuarded)
		e.ok(err)
		e.closing(f)
		if !opened.Created {
			e.Error("the open does not say that it has created the file")
		}
		e.same(e.mustLookup(e.dir, "file"), opened.H)
		if a := e.attr(opened.H); a.Mode != 0o640 || a.Size != 0 {
			e.Errorf("a new file of mode %o and size %d", a.Mode, a.Size)
		}
		e.writeTo(f, "content", 0)
		wantBytes(e, e.contentOf(f), "content")
	}},
	{"creates-guarded", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		_, _, err := e.openName("file", vfs.CreateGuarded)
		e.wantStatus(err, vfs.ErrExist)
		e.wantContent(h, "content")
	}},
	{"creates-unchecked", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		f, opened, err := e.openName("file", vfs.CreateUnchecked)
		e.ok(err)
		e.closing(f)
		e.same(opened.H, h)
		wantBytes(e, e.contentOf(f), "content")
	}},
	{"truncates", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		f, _, err := e.fs.Open(e.ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite, Trunc: true})
		e.ok(err)
		e.closing(f)
		e.wantContent(h, "")
	}},
	{"missing", func(e *env) {
		_, _, err := e.fs.Open(e.ctx, vfs.At{Dir: e.dir, Name: "missing"}, &vfs.OpenHow{Access: vfs.ShareRead})
		e.wantStatus(err, vfs.ErrNoEnt)
	}},
	{"not-a-file", func(e *env) {
		e.mkfile(e.dir, "target", "content")
		for _, h := range []vfs.Handle{e.mkdir(e.dir, "dir"), e.symlink(e.dir, "link", "target")} {
			e.wantStatus(e.openError(vfs.At{H: h}), vfs.ErrIsDir, vfs.ErrInval)
		}
		for _, name := range []string{"dir", "link"} {
			e.wantStatus(e.openError(vfs.At{Dir: e.dir, Name: name}), vfs.ErrIsDir, vfs.ErrInval)
		}
	}},
	{"stale", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		e.remove(e.dir, "file", false)
		e.wantStatus(e.openError(vfs.At{H: h}), vfs.ErrStale)
	}},
	{"no-access", func(e *env) {
		_, _, err := e.fs.Open(e.ctx, vfs.At{H: e.mkfile(e.dir, "file", "")}, &vfs.OpenHow{})
		e.wantStatus(err, vfs.ErrInval)
	}},
	{"read-only", func(e *env) {
		// Writes through an open for reading. NFSv3 has no opens, so the client has
		// to refuse it.
		h := e.mkfile(e.dir, "file", "content")
		f := e.open(h, vfs.ShareRead)
		var w vfs.Written
		_, err := f.WriteAt(e.ctx, []byte("X"), 0, vfs.FileSync, &w)
		e.wantStatus(err, vfs.ErrAccess, vfs.ErrInval, vfs.ErrBadHandle, vfs.ErrPerm)
		_, err = f.Truncate(e.ctx, 0)
		e.wantStatus(err, vfs.ErrAccess, vfs.ErrInval, vfs.ErrBadHandle, vfs.ErrPerm)
		wantBytes(e, e.contentOf(f), "content")
	}},
	{"write-only", func(e *env) {
		f := e.open(e.mkfile(e.dir, "file", "content"), vfs.ShareWrite)
		p := []byte{'x'}
		_, _, err := f.ReadAt(e.ctx, p, 0, nil)
		e.wantStatus(err, vfs.ErrAccess, vfs.ErrInval, vfs.ErrBadHandle, vfs.ErrPerm)
	}},
	{"close-twice", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		f, _, err := e.fs.Open(e.ctx, vfs.At{H: h}, &vfs.OpenHow{Access: readWrite})
		e.ok(err)
		e.ok(f.Close(context.Background()))
		e.wantStatus(f.Close(context.Background()), vfs.ErrInval)
		_, _, err = f.ReadAt(e.ctx, make([]byte, 7), 0, nil)
		if err == nil {
			e.Error("a file that was closed can be read")
		}
		if _, err := f.WriteAt(e.ctx, []byte("X"), 0, vfs.FileSync, new(vfs.Written)); err == nil {
			e.Error("a file that was closed can be written")
		}
		e.wantContent(h, "content")
	}},
	{"independent", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		f := e.open(h, vfs.ShareRead)
		e.with(h, vfs.ShareRead, func(vfs.File) {})
		e.write(h, "CON", 0)
		wantBytes(e, e.contentOf(f), "CONtent")
	}},
}

// openName opens a name of the test's directory, creating it as mode says.
func (e *env) openName(name string, mode vfs.CreateMode) (vfs.File, vfs.Opened, error) {
	create := fileHow(0o640)
	create.Mode = mode
	return e.fs.Open(e.ctx, vfs.At{Dir: e.dir, Name: name}, &vfs.OpenHow{Access: readWrite, Create: create})
}

// openError returns the error of opening an object that cannot be opened. NFSv3 has no
// opens, so an open by handle need not ask the server: then the first read is refused.
func (e *env) openError(at vfs.At) error {
	e.Helper()
	f, _, err := e.fs.Open(e.ctx, at, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return err
	}
	e.closing(f)
	_, _, err = f.ReadAt(e.ctx, make([]byte, 1), 0, nil)
	return err
}
