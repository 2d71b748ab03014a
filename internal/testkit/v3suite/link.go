package v3suite

import (
	"strconv"

	"github.com/nfsbox/nfsbox/proto/nfs3"
)

var linkTests = []test{
	{name: "links", run: func(e *env) {
		h, d := e.file(e.dir, "a", "data"), e.mustMkdir(e.dir, "d")
		e.age(d)
		before := e.attr(d)
		res := e.link(h, d, "b")
		e.ok(res.Status)
		e.post("LINK", &res.Resok.FileAttributes, h)
		e.wcc("LINK", &res.Resok.LinkdirWcc, before, d)
		e.touched("LINK in a directory", d)
		e.same("the new name", e.find(d, "b"), h)
		e.nlink("two names", h, 2)
	}},
	{name: "special", run: func(e *env) {
		res := e.mknod(e.dir, "p", node(nfs3.NF3FIFO))
		e.ok(res.Status)
		h := e.made(&res.Resok.Obj, e.dir, "p")
		e.ok(e.link(h, e.dir, "q").Status)
		e.nlink("two names of a FIFO", h, 2)
	}},
	{name: "existing", run: func(e *env) {
		h := e.file(e.dir, "a", "data")
		e.file(e.dir, "f", "")
		e.mustMkdir(e.dir, "d")
		before := e.attr(e.dir)
		for _, name := range []string{"a", "f", "d"} {
			res := e.link(h, e.dir, name)
			e.gotStatus(res.Status, nfs3.NFS3ERR_EXIST)
			e.postIfAny("a failed LINK", &res.Resfail.FileAttributes, h)
			e.wccIfAny("a failed LINK", &res.Resfail.LinkdirWcc, before, e.dir)
		}
		e.nlink("after failed LINKs", h, 1)
	}},
	{name: "dots", run: func(e *env) {
		h := e.file(e.dir, "f", "")
		for _, name := range []string{".", ".."} {
			e.gotStatus(e.link(h, e.dir, name).Status, nfs3.NFS3ERR_EXIST, nfs3.NFS3ERR_INVAL)
		}
	}},
	{name: "directory", run: func(e *env) {
		// EPERM is what systems say, ISDIR and INVAL what servers make of it.
		d := e.mustMkdir(e.dir, "d")
		e.gotStatus(e.link(d, e.dir, "x").Status, nfs3.NFS3ERR_INVAL, nfs3.NFS3ERR_ISDIR, nfs3.NFS3ERR_PERM)
		e.gone(e.dir, "x")
	}},
	{name: "as-many-as-there-can-be", run: func(e *env) {
		res := e.pathconf(e.dir)
		e.ok(res.Status)
		const few = 1024 // more links than that are not worth a test's time
		if res.Resok.Linkmax > few {
			return
		}
		h := e.file(e.dir, "f", "")
		for i := range res.Resok.Linkmax - 1 {
			e.ok(e.link(h, e.dir, strconv.Itoa(int(i))).Status)
		}
		e.gotStatus(e.link(h, e.dir, "more").Status, nfs3.NFS3ERR_MLINK)
		e.nlink("all links", h, res.Resok.Linkmax)
	}},
}
