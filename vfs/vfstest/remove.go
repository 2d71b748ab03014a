package vfstest

import "github.com/nfsbox/nfsbox/vfs"

var removeTests = []test{
	{"file", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		e.mkfile(e.dir, "other", "")
		e.remove(e.dir, "file", false)
		e.gone(e.dir, "file")
		e.wantNames(e.dir, "other")
		_, err := e.fs.GetAttr(e.ctx, h, vfs.MaskV3)
		e.wantStatus(err, vfs.ErrStale)
	}},
	{"directory", func(e *env) {
		h := e.mkdir(e.dir, "dir")
		e.mkfile(h, "file", "")
		e.remove(h, "file", false)
		e.remove(e.dir, "dir", true)
		e.gone(e.dir, "dir")
		_, err := e.fs.GetAttr(e.ctx, h, vfs.MaskV3)
		e.wantStatus(err, vfs.ErrStale)
	}},
	{"others", func(e *env) {
		// Removes a link, and not what it points at.
		e.mkdir(e.dir, "dir")
		e.symlink(e.dir, "link", "dir")
		_, err := e.fs.Remove(e.ctx, e.dir, "link", true)
		e.wantStatus(err, vfs.ErrNotDir)
		e.remove(e.dir, "link", false)
		e.wantNames(e.dir, "dir")
	}},
	{"missing", func(e *env) {
		for _, isDir := range []bool{false, true} {
			_, err := e.fs.Remove(e.ctx, e.dir, "missing", isDir)
			e.wantStatus(err, vfs.ErrNoEnt)
		}
	}},
	{"directory-as-file", func(e *env) {
		e.mkdir(e.dir, "dir")
		_, err := e.fs.Remove(e.ctx, e.dir, "dir", false)
		e.wantStatus(err, vfs.ErrIsDir, vfs.ErrPerm)
		e.mustLookup(e.dir, "dir")
	}},
	{"file-as-directory", func(e *env) {
		e.mkfile(e.dir, "file", "")
		_, err := e.fs.Remove(e.ctx, e.dir, "file", true)
		e.wantStatus(err, vfs.ErrNotDir)
		e.mustLookup(e.dir, "file")
	}},
	{"not-empty", func(e *env) {
		h := e.mkdir(e.dir, "dir")
		e.mkfile(h, "file", "")
		_, err := e.fs.Remove(e.ctx, e.dir, "dir", true)
		e.wantStatus(err, vfs.ErrNotEmpty, vfs.ErrExist)
		e.wantNames(h, "file")
	}},
	{"in-file", func(e *env) {
		h := e.mkfile(e.dir, "file", "")
		for _, isDir := range []bool{false, true} {
			_, err := e.fs.Remove(e.ctx, h, "name", isDir)
			e.wantStatus(err, vfs.ErrNotDir)
		}
	}},
	{"one-of-two-names", func(e *env) {
		h := e.mkfile(e.dir, "a", "content")
		e.link(h, e.dir, "b")
		e.remove(e.dir, "a", false)
		e.wantNlink(h, 1)
		e.wantContent(h, "content")
		e.wantContent(e.mustLookup(e.dir, "b"), "content")
	}},
	{"while-open", func(e *env) {
		// Removes the last name of an open file, as is done for temporary files:
		// the file stays readable.
		f := e.open(e.mkfile(e.dir, "file", "content"), readWrite)
		e.remove(e.dir, "file", false)
		e.gone(e.dir, "file")
		wantBytes(e, e.contentOf(f), "content")
		e.writeTo(f, "more", 7)
		wantBytes(e, e.contentOf(f), "contentmore")
	}},
	{"name-again", func(e *env) {
		// Makes a name again at once: it is another object.
		h := e.mkfile(e.dir, "name", "old")
		e.remove(e.dir, "name", false)
		again := e.mkfile(e.dir, "name", "new")
		e.wantContent(again, "new")
		_, err := e.fs.GetAttr(e.ctx, h, vfs.MaskV3)
		e.wantStatus(err, vfs.ErrStale)
	}},
	{"modifies-directory", func(e *env) {
		e.mkfile(e.dir, "file", "")
		e.mkdir(e.dir, "dir")
		e.age(e.dir)
		before := e.attr(e.dir)
		wcc, err := e.fs.Remove(e.ctx, e.dir, "file", false)
		e.ok(err)
		e.wantModified(e.dir)
		after := e.attr(e.dir)
		e.checkWCC(&wcc, &before, &after)
		e.age(e.dir)
		e.remove(e.dir, "dir", true)
		e.wantModified(e.dir)
		e.age(e.dir)
		_, err = e.fs.Remove(e.ctx, e.dir, "missing", false)
		e.wantStatus(err, vfs.ErrNoEnt)
		e.wantUnmodified(e.dir)
	}},
}

// remove removes a name, which must be allowed.
func (e *env) remove(dir vfs.Handle, name string, isDir bool) {
	e.Helper()
	_, err := e.fs.Remove(e.ctx, dir, name, isDir)
	e.ok(err)
}
