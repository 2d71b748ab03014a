package v3suite

import "github.com/nfsbox/nfsbox/proto/nfs3"

var removeTests = []test{
	{name: "removes", run: func(e *env) {
		e.file(e.dir, "f", "x")
		e.mustSymlink(e.dir, "l", "f")
		e.ok(e.mknod(e.dir, "p", node(nfs3.NF3FIFO)).Status)
		for _, name := range []string{"l", "f", "p"} {
			e.age(e.dir)
			before := e.attr(e.dir)
			res := e.remove(e.dir, name)
			e.ok(res.Status)
			e.wcc("REMOVE", &res.Resok.DirWcc, before, e.dir)
			e.touched("REMOVE in a directory", e.dir)
			e.gone(e.dir, name)
		}
	}},
	{name: "one-name-of-two", run: func(e *env) {
		h := e.file(e.dir, "a", "data")
		e.ok(e.link(h, e.dir, "b").Status)
		e.ok(e.remove(e.dir, "a").Status)
		e.nlink("after REMOVE of one of two names", h, 1)
		e.content("by the other name", e.find(e.dir, "b"), "data")
	}},
	{name: "missing", run: func(e *env) {
		before := e.attr(e.dir)
		res := e.remove(e.dir, "missing")
		e.gotStatus(res.Status, nfs3.NFS3ERR_NOENT)
		e.wccIfAny("a failed REMOVE", &res.Resfail.DirWcc, before, e.dir)
		e.unchanged("a failed REMOVE", before, e.dir)
	}},
	{name: "directory", run: func(e *env) {
		// The RFC lets REMOVE take directories away, and no server does.
		e.mustMkdir(e.dir, "d")
		e.gotStatus(e.remove(e.dir, "d").Status, nfs3.NFS3ERR_ISDIR, nfs3.NFS3ERR_PERM, nfs3.NFS3ERR_ACCES)
		e.find(e.dir, "d")
	}},
	{name: "dots", run: func(e *env) {
		for _, name := range []string{".", ".."} {
			e.gotStatus(e.remove(e.dir, name).Status, nfs3.NFS3ERR_ISDIR, nfs3.NFS3ERR_PERM, nfs3.NFS3ERR_INVAL, nfs3.NFS3ERR_ACCES, nfs3.NFS3ERR_EXIST)
		}
		e.attr(e.dir)
	}},
}

var rmdirTests = []test{
	{name: "removes", run: func(e *env) {
		e.mustMkdir(e.dir, "d")
		e.age(e.dir)
		before := e.attr(e.dir)
		res := e.rmdir(e.dir, "d")
		e.ok(res.Status)
		e.wcc("RMDIR", &res.Resok.DirWcc, before, e.dir)
		e.touched("RMDIR in a directory", e.dir)
		e.gone(e.dir, "d")
	}},
	{name: "missing", run: func(e *env) {
		before := e.attr(e.dir)
		res := e.rmdir(e.dir, "missing")
		e.gotStatus(res.Status, nfs3.NFS3ERR_NOENT)
		e.wccIfAny("a failed RMDIR", &res.Resfail.DirWcc, before, e.dir)
	}},
	{name: "not-empty", run: func(e *env) {
		d := e.mustMkdir(e.dir, "d")
		e.file(d, "f", "")
		before := e.attr(e.dir)
		res := e.rmdir(e.dir, "d")
		e.gotStatus(res.Status, nfs3.NFS3ERR_NOTEMPTY, nfs3.NFS3ERR_EXIST)
		e.wccIfAny("a failed RMDIR", &res.Resfail.DirWcc, before, e.dir)
		e.find(d, "f")
	}},
	{name: "not-a-directory", run: func(e *env) {
		e.file(e.dir, "f", "")
		e.mustSymlink(e.dir, "l", ".")
		for _, name := range []string{"f", "l"} {
			e.gotStatus(e.rmdir(e.dir, name).Status, nfs3.NFS3ERR_NOTDIR)
			e.find(e.dir, name)
		}
	}},
	{name: "dot", run: func(e *env) {
		d := e.mustMkdir(e.dir, "d")
		e.gotStatus(e.rmdir(d, ".").Status, nfs3.NFS3ERR_INVAL)
		e.find(e.dir, "d")
	}},
	{name: "dotdot", run: func(e *env) {
		d := e.mustMkdir(e.dir, "d")
		e.gotStatus(e.rmdir(d, "..").Status, nfs3.NFS3ERR_EXIST, nfs3.NFS3ERR_NOTEMPTY, nfs3.NFS3ERR_INVAL)
		e.find(e.dir, "d")
	}},
}
