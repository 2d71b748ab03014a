package v3suite

import "github.com/nfsbox/nfsbox/proto/nfs3"

var lookupTests = []test{
	{name: "finds", run: func(e *env) {
		made := map[string]handle{
			"f": e.file(e.dir, "f", "x"), "d": e.mustMkdir(e.dir, "d"), "l": e.mustSymlink(e.dir, "l", "f"),
		}
		for name, h := range made {
			res := e.lookup(e.dir, name)
			e.ok(res.Status)
			if n := len(res.Resok.Object.Data); n == 0 || n > nfs3.NFS3_FHSIZE {
				e.Errorf("%s: a handle of %d bytes", name, n)
			}
			e.same(name, res.Resok.Object.Data, h)
			e.post("object of LOOKUP", &res.Resok.ObjAttributes, h)
			e.post("directory of LOOKUP", &res.Resok.DirAttributes, e.dir)
		}
	}},
	{name: "handles-stay", run: func(e *env) {
		h := e.file(e.dir, "f", "data")
		e.ok(e.rename(e.dir, "f", e.mustMkdir(e.dir, "d"), "g").Status)
		e.content("by the handle from before a RENAME", h, "data")
	}},
	{name: "dots", run: func(e *env) {
		sub := e.mustMkdir(e.dir, "sub")
		e.same(".", e.find(sub, "."), sub)
		e.same("..", e.find(sub, ".."), e.dir)
	}},
	{name: "dotdot-of-the-export", run: func(e *env) {
		// The RFC's LOOKUP knows no way out: the root's parent is the root, or
		// there is none.
		res := e.lookup(e.export, "..")
		if e.gotStatus(res.Status, nfs3.NFS3_OK, nfs3.NFS3ERR_NOENT, nfs3.NFS3ERR_ACCES) && res.Status == nfs3.NFS3_OK {
			e.same("..", res.Resok.Object.Data, e.export)
		}
	}},
	{name: "missing", run: func(e *env) {
		res := e.lookup(e.dir, "missing")
		e.gotStatus(res.Status, nfs3.NFS3ERR_NOENT)
		e.postIfAny("directory of a failed LOOKUP", &res.Resfail.DirAttributes, e.dir)
	}},
	{name: "case", run: func(e *env) {
		conf := e.pathconf(e.dir)
		e.ok(conf.Status)
		e.file(e.dir, "Name", "")
		want := nfs3.NFS3ERR_NOENT
		if conf.Resok.CaseInsensitive {
			want = nfs3.NFS3_OK
		}
		e.gotStatus(e.lookup(e.dir, "nAME").Status, want)
	}},
}
