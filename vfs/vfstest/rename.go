package vfstest

import "github.com/nfsbox/nfsbox/vfs"

var renameTests = []test{
	{"file", func(e *env) {
		h := e.mkfile(e.dir, "a", "content")
		e.rename(e.dir, "a", e.dir, "b")
		e.wantNames(e.dir, "b")
		e.gone(e.dir, "a")
		e.same(e.mustLookup(e.dir, "b"), h)
		e.wantContent(h, "content")
		e.wantNlink(h, 1)
	}},
	{"to-other-directory", func(e *env) {
		from, to := e.mkdir(e.dir, "from"), e.mkdir(e.dir, "to")
		h := e.mkfile(from, "a", "content")
		e.rename(from, "a", to, "b")
		e.wantNames(from)
		e.wantNames(to, "b")
		e.same(e.mustLookup(to, "b"), h)
		e.wantContent(h, "content")
	}},
	{"directory", func(e *env) {
		from, to := e.mkdir(e.dir, "from"), e.mkdir(e.dir, "to")
		h := e.mkdir(from, "dir")
		inner := e.mkfile(h, "inner", "content")
		e.rename(from, "dir", to, "dir")
		e.wantNames(from)
		e.same(e.mustLookup(to, "dir"), h)
		e.same(e.mustLookup(h, ".."), to)
		e.same(e.mustLookup(h, "inner"), inner)
	}},
	{"symlink", func(e *env) {
		e.mkfile(e.dir, "target", "")
		h := e.symlink(e.dir, "a", "target")
		e.rename(e.dir, "a", e.dir, "b")
		e.same(e.mustLookup(e.dir, "b"), h)
		e.wantNames(e.dir, "b", "target")
	}},
	{"replaces-file", func(e *env) {
		h, old := e.mkfile(e.dir, "a", "new"), e.mkfile(e.dir, "b", "old")
		e.rename(e.dir, "a", e.dir, "b")
		e.wantNames(e.dir, "b")
		e.same(e.mustLookup(e.dir, "b"), h)
		e.wantContent(h, "new")
		_, err := e.fs.GetAttr(e.ctx, old, vfs.MaskV3)
		e.wantStatus(err, vfs.ErrStale)
	}},
	{"replaces-other-types", func(e *env) {
		e.mkfile(e.dir, "target", "content")
		e.symlink(e.dir, "link", "target")
		linked := e.mkfile(e.dir, "linked", "")
		e.link(linked, e.dir, "linked-too")
		h := e.mkfile(e.dir, "a", "new")
		e.rename(e.dir, "a", e.dir, "link")
		e.same(e.mustLookup(e.dir, "link"), h)
		e.wantContent(e.mustLookup(e.dir, "target"), "content")
		e.rename(e.dir, "link", e.dir, "linked")
		e.same(e.mustLookup(e.dir, "linked"), h)
		e.wantNlink(linked, 1)
		e.wantNames(e.dir, "linked", "linked-too", "target")
	}},
	{"replaces-empty-directory", func(e *env) {
		h, old := e.mkdir(e.dir, "a"), e.mkdir(e.dir, "b")
		e.mkfile(h, "inner", "")
		e.rename(e.dir, "a", e.dir, "b")
		e.same(e.mustLookup(e.dir, "b"), h)
		e.wantNames(e.dir, "b")
		e.wantNames(h, "inner")
		_, err := e.fs.GetAttr(e.ctx, old, vfs.MaskV3)
		e.wantStatus(err, vfs.ErrStale)
	}},
	{"over-full-directory", func(e *env) {
		e.mkdir(e.dir, "a")
		e.mkfile(e.mkdir(e.dir, "b"), "inner", "")
		e.noRename(e.dir, "a", e.dir, "b", vfs.ErrNotEmpty, vfs.ErrExist)
		e.wantNames(e.dir, "a", "b")
	}},
	{"directory-over-file", func(e *env) {
		e.mkdir(e.dir, "a")
		h := e.mkfile(e.dir, "b", "content")
		e.noRename(e.dir, "a", e.dir, "b", vfs.ErrNotDir, vfs.ErrExist)
		e.wantContent(h, "content")
	}},
	{"file-over-directory", func(e *env) {
		h := e.mkfile(e.dir, "a", "content")
		e.mkdir(e.dir, "b")
		e.noRename(e.dir, "a", e.dir, "b", vfs.ErrIsDir, vfs.ErrExist)
		e.same(e.mustLookup(e.dir, "a"), h)
	}},
	{"missing", func(e *env) {
		h := e.mkfile(e.dir, "b", "content")
		e.noRename(e.dir, "missing", e.dir, "b", vfs.ErrNoEnt)
		e.noRename(e.dir, "missing", e.dir, "c", vfs.ErrNoEnt)
		e.wantContent(h, "content")
		e.wantNames(e.dir, "b")
	}},
	{"into-itself", func(e *env) {
		a := e.mkdir(e.dir, "a")
		b := e.mkdir(a, "b")
		e.noRename(e.dir, "a", a, "new", vfs.ErrInval)
		e.noRename(e.dir, "a", b, "new", vfs.ErrInval)
		e.same(e.mustLookup(e.dir, "a"), a)
		e.wantNames(a, "b")
		e.wantNames(b)
	}},
	{"over-ancestor", func(e *env) {
		a := e.mkdir(e.dir, "a")
		b := e.mkdir(a, "b")
		e.mkdir(b, "c")
		e.noRename(b, "c", e.dir, "a", vfs.ErrNotEmpty, vfs.ErrExist)
		e.noRename(a, "b", e.dir, "a", vfs.ErrNotEmpty, vfs.ErrExist)
		e.wantNames(b, "c")
	}},
	{"same-name", func(e *env) {
		h := e.mkfile(e.dir, "a", "content")
		e.rename(e.dir, "a", e.dir, "a")
		e.wantContent(h, "content")
		dir := e.mkdir(e.dir, "dir")
		e.mkfile(dir, "inner", "")
		e.rename(e.dir, "dir", e.dir, "dir")
		e.wantNames(dir, "inner")
	}},
	{"same-object", func(e *env) {
		h, dir := e.mkfile(e.dir, "a", "content"), e.mkdir(e.dir, "dir")
		e.link(h, e.dir, "b")
		e.link(h, dir, "c")
		e.rename(e.dir, "a", e.dir, "b")
		e.rename(e.dir, "a", dir, "c")
		e.wantNames(e.dir, "a", "b", "dir")
		e.wantNames(dir, "c")
		e.wantNlink(h, 3)
		e.wantContent(h, "content")
	}},
	{"over-open-file", func(e *env) {
		// Replaces a file that is open, which stays readable.
		f := e.open(e.mkfile(e.dir, "b", "old"), vfs.ShareRead)
		h := e.mkfile(e.dir, "a", "new")
		e.rename(e.dir, "a", e.dir, "b")
		e.same(e.mustLookup(e.dir, "b"), h)
		wantBytes(e, e.contentOf(f), "old")
	}},
	{"in-file", func(e *env) {
		h := e.mkfile(e.dir, "file", "")
		e.mkfile(e.dir, "a", "")
		e.noRename(h, "a", e.dir, "b", vfs.ErrNotDir)
		e.noRename(e.dir, "a", h, "b", vfs.ErrNotDir)
		e.wantNames(e.dir, "a", "file")
	}},
	{"counts-directories", func(e *env) {
		if !e.countsDirs() {
			e.Skip("nlink of a directory does not count its directories here")
		}
		from, to := e.mkdir(e.dir, "from"), e.mkdir(e.dir, "to")
		e.mkdir(from, "dir")
		e.mkdir(to, "replaced")
		e.rename(from, "dir", to, "dir")
		e.wantNlink(from, 2)
		e.wantNlink(to, 4)
		e.rename(to, "dir", to, "replaced")
		e.wantNlink(to, 3)
	}},
	{"modifies-directories", func(e *env) {
		from, to := e.mkdir(e.dir, "from"), e.mkdir(e.dir, "to")
		h := e.mkfile(from, "a", "content")
		e.age(from, to, h)
		beforeFrom, beforeTo := e.attr(from), e.attr(to)
		wccFrom, wccTo, err := e.fs.Rename(e.ctx, from, "a", to, "b")
		e.ok(err)
		e.wantModified(from, to)
		e.wantUnmodified(h)
		afterFrom, afterTo := e.attr(from), e.attr(to)
		e.checkWCC(&wccFrom, &beforeFrom, &afterFrom)
		e.checkWCC(&wccTo, &beforeTo, &afterTo)
	}},
}

// rename moves a name, which must be allowed.
func (e *env) rename(fromDir vfs.Handle, from string, toDir vfs.Handle, to string) {
	e.Helper()
	_, _, err := e.fs.Rename(e.ctx, fromDir, from, toDir, to)
	e.ok(err)
}

// noRename ends the test unless the rename fails with one of the statuses.
func (e *env) noRename(fromDir vfs.Handle, from string, toDir vfs.Handle, to string, want ...vfs.Status) {
	e.Helper()
	_, _, err := e.fs.Rename(e.ctx, fromDir, from, toDir, to)
	e.wantStatus(err, want...)
}
