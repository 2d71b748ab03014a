package v3suite

import "github.com/nfsbox/nfsbox/proto/nfs3"

var mkdirTests = []test{
	{name: "makes", run: func(e *env) {
		e.age(e.dir)
		before := e.attr(e.dir)
		res := e.mkdir(e.dir, "d", mode(0o750))
		e.ok(res.Status)
		h := e.created((*nfs3.CREATE3resok)(&res.Resok), before, "d")
		if a := e.attr(h); a.Type != nfs3.NF3DIR || a.Mode != 0o750 {
			e.Errorf("attributes %+v of a new directory of mode 0750", a)
		}
		e.same("..", e.find(h, ".."), e.dir)
	}},
	{name: "existing", run: func(e *env) {
		e.file(e.dir, "f", "")
		e.mustMkdir(e.dir, "d")
		e.mustSymlink(e.dir, "l", "nowhere")
		before := e.attr(e.dir)
		for _, name := range []string{"f", "d", "l"} {
			res := e.mkdir(e.dir, name, mode(0o777))
			e.gotStatus(res.Status, nfs3.NFS3ERR_EXIST)
			e.wccIfAny("a refused MKDIR", &res.Resfail.DirWcc, before, e.dir)
		}
		e.unchanged("refused MKDIRs", before, e.dir)
	}},
	{name: "dots", run: func(e *env) {
		for _, name := range []string{".", ".."} {
			e.gotStatus(e.mkdir(e.dir, name, mode(0o777)).Status, nfs3.NFS3ERR_EXIST)
		}
	}},
}
