package v3suite

import (
	"strconv"

	"github.com/nfsbox/nfsbox/proto/nfs3"
)

var symlinkTests = []test{
	{name: "makes", run: func(e *env) {
		e.age(e.dir)
		before := e.attr(e.dir)
		res := e.symlink(e.dir, "l", "a target")
		e.ok(res.Status)
		h := e.created((*nfs3.CREATE3resok)(&res.Resok), before, "l")
		if a := e.attr(h); a.Type != nfs3.NF3LNK {
			e.Errorf("attributes %+v of a new symbolic link", a)
		}
	}},
	{name: "existing", run: func(e *env) {
		e.file(e.dir, "f", "data")
		e.mustMkdir(e.dir, "d")
		e.mustSymlink(e.dir, "l", "nowhere")
		before := e.attr(e.dir)
		for _, name := range []string{"f", "d", "l"} {
			res := e.symlink(e.dir, name, "x")
			e.gotStatus(res.Status, nfs3.NFS3ERR_EXIST)
			e.wccIfAny("a refused SYMLINK", &res.Resfail.DirWcc, before, e.dir)
		}
		e.unchanged("refused SYMLINKs", before, e.dir)
	}},
	{name: "dots", run: func(e *env) {
		for _, name := range []string{".", ".."} {
			e.gotStatus(e.symlink(e.dir, name, "x").Status, nfs3.NFS3ERR_EXIST)
		}
	}},
	{name: "target-too-long", run: func(e *env) {
		e.gotStatus(e.symlink(e.dir, "l", name(5000)).Status, nfs3.NFS3ERR_NAMETOOLONG)
		e.gone(e.dir, "l")
	}},
	{name: "target-of-a-client's-own", run: func(e *env) {
		// Targets are the clients' business. What no system of ours would make, a
		// server keeps as it is, or refuses.
		for i, target := range []string{"", "a\x00b"} {
			name := strconv.Itoa(i)
			res := e.symlink(e.dir, name, target)
			if !e.gotStatus(res.Status, nfs3.NFS3_OK, nfs3.NFS3ERR_INVAL, nfs3.NFS3ERR_ACCES, nfs3.NFS3ERR_NOENT, garbageArgs) {
				continue
			}
			if res.Status != nfs3.NFS3_OK {
				e.gone(e.dir, name)
			} else if got := e.readlink(e.made(&res.Resok.Obj, e.dir, name)); string(got.Resok.Data) != target {
				e.Errorf("target %q, want %q", got.Resok.Data, target)
			}
		}
	}},
}
