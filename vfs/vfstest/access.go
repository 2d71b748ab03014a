package vfstest

import "github.com/nfsbox/nfsbox/vfs"

var accessTests = []test{
	{"own-file", func(e *env) {
		e.wantRights(e.mkfile(e.dir, "file", ""), vfs.AccessRead|vfs.AccessModify|vfs.AccessExtend)
	}},
	{"own-directory", func(e *env) {
		e.wantRights(e.mkdir(e.dir, "dir"), vfs.AccessRead|vfs.AccessLookup|vfs.AccessModify|vfs.AccessExtend|vfs.AccessDelete)
	}},
	{"only-what-is-asked", func(e *env) {
		h := e.mkdir(e.dir, "dir")
		for bit := vfs.AccessRead; bit <= vfs.AccessExecute; bit <<= 1 {
			have, _, err := e.fs.Access(e.ctx, h, bit)
			e.ok(err)
			if have&^bit != 0 {
				e.Errorf("asked for %#x, answered %#x", bit, have)
			}
		}
	}},
	{"execute", func(e *env) {
		e.wantRights(e.create(e.dir, "program", fileHow(0o755)), vfs.AccessRead|vfs.AccessExecute)
		have, _, err := e.fs.Access(e.ctx, e.create(e.dir, "text", fileHow(0o644)), vfs.AccessExecute)
		e.ok(err)
		if have != 0 {
			e.Errorf("a file without an execute bit may be run")
		}
	}},
	{"stale", func(e *env) {
		h := e.mkfile(e.dir, "file", "")
		_, err := e.fs.Remove(e.ctx, e.dir, "file", false)
		e.ok(err)
		_, _, err = e.fs.Access(e.ctx, h, vfs.AccessRead)
		e.wantStatus(err, vfs.ErrStale)
	}},
}

const allRights = vfs.AccessRead | vfs.AccessLookup | vfs.AccessModify | vfs.AccessExtend | vfs.AccessDelete | vfs.AccessExecute

// wantRights ends the test unless the caller has all of want on h.
func (e *env) wantRights(h vfs.Handle, want vfs.Access) {
	e.Helper()
	have, _, err := e.fs.Access(e.ctx, h, allRights)
	e.ok(err)
	if missing := want &^ have; missing != 0 {
		e.Fatalf("rights %#x, %#x is missing", have, missing)
	}
}
