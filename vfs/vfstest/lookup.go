package vfstest

import "github.com/nfsbox/nfsbox/vfs"

var lookupTests = []test{
	{"finds", func(e *env) {
		file, dir := e.mkfile(e.dir, "file", ""), e.mkdir(e.dir, "dir")
		inner := e.mkfile(dir, "file", "")
		e.same(e.mustLookup(e.dir, "file"), file)
		e.same(e.mustLookup(e.dir, "dir"), dir)
		e.same(e.mustLookup(dir, "file"), inner)
	}},
	{"missing", func(e *env) {
		e.gone(e.dir, "missing")
		e.mkfile(e.dir, "Case", "")
		if info := e.info(vfs.InfoNames); !info.CaseInsensitive {
			e.gone(e.dir, "case")
		}
		e.gone(e.dir, "Cas")
		e.gone(e.dir, "Case ")
	}},
	{"in-file", func(e *env) {
		_, _, _, err := e.fs.Lookup(e.ctx, e.mkfile(e.dir, "file", ""), "name")
		e.wantStatus(err, vfs.ErrNotDir)
	}},
	{"in-symlink", func(e *env) {
		e.mkdir(e.dir, "dir")
		_, _, _, err := e.fs.Lookup(e.ctx, e.symlink(e.dir, "link", "dir"), "name")
		e.wantStatus(err, vfs.ErrNotDir, vfs.ErrInval)
	}},
	{"does-not-follow", func(e *env) {
		e.mkdir(e.dir, "dir")
		e.symlink(e.dir, "link", "dir")
		if got := e.attr(e.mustLookup(e.dir, "link")).Type; got != vfs.TypeSymlink {
			e.Errorf("lookup of a symbolic link finds a %s", got)
		}
	}},
	{"parent", func(e *env) {
		dir := e.mkdir(e.dir, "dir")
		inner := e.mkdir(dir, "inner")
		e.same(e.mustLookup(inner, ".."), dir)
		e.same(e.mustLookup(dir, ".."), e.dir)
		e.same(e.mustLookup(e.dir, ".."), e.root)
	}},
	{"parent-of-root", func(e *env) {
		e.same(e.mustLookup(e.root, ".."), e.root)
	}},
	{"in-removed", func(e *env) {
		dir := e.mkdir(e.dir, "dir")
		_, err := e.fs.Remove(e.ctx, e.dir, "dir", true)
		e.ok(err)
		_, _, _, err = e.fs.Lookup(e.ctx, dir, "name")
		e.wantStatus(err, vfs.ErrStale, vfs.ErrNoEnt)
	}},
}
