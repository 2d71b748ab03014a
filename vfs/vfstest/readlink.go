package vfstest

import "github.com/nfsbox/nfsbox/vfs"

var readlinkTests = []test{
	{"of-others", func(e *env) {
		for _, h := range []vfs.Handle{e.mkfile(e.dir, "file", "target"), e.mkdir(e.dir, "dir")} {
			_, _, err := e.fs.Readlink(e.ctx, h)
			e.wantStatus(err, vfs.ErrInval)
		}
	}},
	{"stale", func(e *env) {
		h := e.symlink(e.dir, "link", "target")
		_, err := e.fs.Remove(e.ctx, e.dir, "link", false)
		e.ok(err)
		_, _, err = e.fs.Readlink(e.ctx, h)
		e.wantStatus(err, vfs.ErrStale)
	}},
}
