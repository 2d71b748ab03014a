package vfstest

import (
	"bytes"

	"github.com/nfsbox/nfsbox/vfs"
)

var handleTests = []test{
	{"survives-rename", func(e *env) {
		from, to := e.mkdir(e.dir, "from"), e.mkdir(e.dir, "to")
		dir := e.mkdir(from, "dir")
		file := e.mkfile(dir, "file", "content")
		f := e.open(file, readWrite)
		e.rename(from, "dir", to, "moved")
		e.rename(dir, "file", from, "out")
		e.writeTo(f, "CON", 0)
		e.wantContent(file, "CONtent")
		e.mkfile(dir, "new", "")
		e.wantNames(dir, "new")
		e.same(e.mustLookup(from, "out"), file)
	}},
	{"survives-restart", func(e *env) {
		dir := e.mkdir(e.dir, "dir")
		file, link := e.mkfile(dir, "file", "content"), e.symlink(dir, "link", "target")
		before := e.attr(file)
		e.restart()
		if a := e.attr(file); a.FileID != before.FileID || a.Size != before.Size || !a.Mtime.Equal(before.Mtime) {
			e.Errorf("after the restart %+v, before it %+v", a, before)
		}
		e.wantContent(file, "content")
		target, _, err := e.fs.Readlink(e.ctx, link)
		e.ok(err)
		wantBytes(e, target, "target")
		e.same(e.mustLookup(dir, "file"), file)
		e.mkfile(dir, "new", "")
		e.wantNames(dir, "file", "link", "new")
	}},
	{"survives-rename-and-restart", func(e *env) {
		from, to := e.mkdir(e.dir, "from"), e.mkdir(e.dir, "to")
		dir := e.mkdir(from, "dir")
		file := e.mkfile(dir, "file", "content")
		e.rename(from, "dir", to, "moved")
		e.restart()
		e.wantContent(file, "content")
		e.same(e.mustLookup(dir, ".."), to)
		e.rename(dir, "file", from, "out")
		e.wantContent(file, "content")
	}},
	{"stale-after-restart", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		e.remove(e.dir, "file", false)
		e.restart()
		e.mkfile(e.dir, "file", "another")
		_, err := e.fs.GetAttr(e.ctx, h, vfs.MaskV3)
		e.wantStatus(err, vfs.ErrStale)
	}},
	{"stale", func(e *env) {
		h := e.mkdir(e.dir, "dir")
		e.remove(e.dir, "dir", true)
		e.refused(h, vfs.ErrStale, vfs.ErrNoEnt)
	}},
	{"garbage", func(e *env) {
		// Uses handles that no FS makes. The zero Handle is among them.
		e.refused(vfs.Handle{}, vfs.ErrBadHandle, vfs.ErrStale)
		for _, n := range []int{1, 8, 16, 31, vfs.MaxHandleV3, vfs.MaxHandle} {
			for _, fill := range []byte{0xff, 0x5a} {
				h, err := vfs.MakeHandle(bytes.Repeat([]byte{fill}, n))
				e.ok(err)
				e.refused(h, vfs.ErrBadHandle, vfs.ErrStale)
			}
		}
	}},
	{"fits", func(e *env) {
		for _, h := range []vfs.Handle{e.root, e.mkfile(e.dir, "file", ""), e.mkdir(e.dir, "dir")} {
			if h.Len() == 0 || h.Len() > vfs.MaxHandle {
				e.Errorf("a handle of %d bytes", h.Len())
			}
			if again, err := vfs.MakeHandle(h.Bytes()); err != nil || again != h {
				e.Errorf("the bytes of a handle make another one: %v", err)
			}
		}
	}},
}

// refused calls every method that takes a handle with h, which names nothing, and ends
// the test at an answer that is not one of the statuses.
func (e *env) refused(h vfs.Handle, want ...vfs.Status) {
	e.Helper()
	_, err := e.fs.GetAttr(e.ctx, h, vfs.MaskV3)
	e.wantStatus(err, want...)
	_, err = e.fs.SetAttr(e.ctx, h, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}, nil)
	e.wantStatus(err, want...)
	_, _, err = e.fs.Access(e.ctx, h, vfs.AccessRead)
	e.wantStatus(err, want...)
	_, _, err = e.fs.Readlink(e.ctx, h)
	e.wantStatus(err, want...)
	_, _, _, err = e.fs.Lookup(e.ctx, h, "name")
	e.wantStatus(err, want...)
	_, _, _, err = e.fs.Create(e.ctx, h, "name", fileHow(0o644))
	e.wantStatus(err, want...)
	_, err = e.fs.Remove(e.ctx, h, "name", false)
	e.wantStatus(err, want...)
	_, _, err = e.fs.Rename(e.ctx, h, "name", h, "other")
	e.wantStatus(err, want...)
	_, _, err = e.fs.Link(e.ctx, h, e.dir, "name")
	e.wantStatus(err, want...)
	e.wantStatus(e.openError(vfs.At{H: h}), want...)
	e.wantStatus(e.listError(h, vfs.Pos{}), want...)
	e.wantNames(e.dir)
}
