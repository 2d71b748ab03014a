package vfstest

import "github.com/nfsbox/nfsbox/vfs"

var linkTests = []test{
	{"counts", func(e *env) {
		h, dir := e.mkfile(e.dir, "a", ""), e.mkdir(e.dir, "dir")
		e.link(h, e.dir, "b")
		e.wantNlink(h, 2)
		e.link(h, dir, "c")
		e.wantNlink(h, 3)
		for i, name := range []string{"a", "b"} {
			_, err := e.fs.Remove(e.ctx, e.dir, name, false)
			e.ok(err)
			e.wantNlink(h, uint32(2-i))
		}
		e.same(e.mustLookup(dir, "c"), h)
		_, err := e.fs.Remove(e.ctx, dir, "c", false)
		e.ok(err)
		_, err = e.fs.GetAttr(e.ctx, h, vfs.MaskV3)
		e.wantStatus(err, vfs.ErrStale)
	}},
	{"shares-content", func(e *env) {
		h := e.mkfile(e.dir, "a", "content")
		attr, _, err := e.fs.Link(e.ctx, h, e.dir, "b")
		e.ok(err)
		if attr.Has(vfs.MaskNlink) && attr.Nlink != 2 {
			e.Errorf("link says nlink %d, want 2", attr.Nlink)
		}
		b := e.mustLookup(e.dir, "b")
		e.same(h, b)
		e.write(b, "CON", 0)
		e.wantContent(h, "CONtent")
	}},
	{"existing", func(e *env) {
		h, other := e.mkfile(e.dir, "a", ""), e.mkfile(e.dir, "b", "content")
		e.mkdir(e.dir, "dir")
		for _, name := range []string{"a", "b", "dir"} {
			_, _, err := e.fs.Link(e.ctx, h, e.dir, name)
			e.wantStatus(err, vfs.ErrExist)
		}
		e.wantNlink(h, 1)
		e.wantContent(other, "content")
	}},
	{"of-directory", func(e *env) {
		_, _, err := e.fs.Link(e.ctx, e.mkdir(e.dir, "dir"), e.dir, "name")
		e.wantStatus(err, vfs.ErrIsDir, vfs.ErrPerm, vfs.ErrInval)
		e.wantNames(e.dir, "dir")
	}},
	{"of-symlink", func(e *env) {
		// Names the link itself and not what it points at; POSIX leaves
		// it to the system whether symbolic links can have two names.
		e.mkfile(e.dir, "target", "")
		h := e.symlink(e.dir, "a", "target")
		if _, _, err := e.fs.Link(e.ctx, h, e.dir, "b"); err != nil {
			e.wantStatus(err, vfs.ErrPerm, vfs.ErrInval, vfs.ErrNotSupp)
			return
		}
		e.same(e.mustLookup(e.dir, "b"), h)
		e.wantNlink(h, 2)
	}},
	{"in-file", func(e *env) {
		h := e.mkfile(e.dir, "file", "")
		_, _, err := e.fs.Link(e.ctx, h, h, "name")
		e.wantStatus(err, vfs.ErrNotDir)
	}},
	{"stale", func(e *env) {
		h := e.mkfile(e.dir, "file", "")
		_, err := e.fs.Remove(e.ctx, e.dir, "file", false)
		e.ok(err)
		_, _, err = e.fs.Link(e.ctx, h, e.dir, "name")
		e.wantStatus(err, vfs.ErrStale)
		e.wantNames(e.dir)
	}},
	{"modifies-directory", func(e *env) {
		h, dir := e.mkfile(e.dir, "file", ""), e.mkdir(e.dir, "dir")
		e.age(h, dir)
		before := e.attr(h)
		e.link(h, dir, "name")
		e.wantModified(dir)
		e.wantUnmodified(h)
		if after := e.attr(h); after.Ctime.Before(before.Ctime) || after.Change < before.Change {
			e.Errorf("ctime went from %v to %v", before.Ctime, after.Ctime)
		}
	}},
}

// link gives h a further name, which must be allowed.
func (e *env) link(h, dir vfs.Handle, name string) {
	e.Helper()
	_, _, err := e.fs.Link(e.ctx, h, dir, name)
	e.ok(err)
}
