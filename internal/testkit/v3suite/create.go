package v3suite

import "github.com/nfsbox/nfsbox/proto/nfs3"

var createTests = []test{
	{name: "modes", run: func(e *env) {
		for name, how := range map[string]nfs3.Createhow3{
			"unchecked": unchecked(mode(0o604)), "guarded": guarded(mode(0o604)), "exclusive": exclusive(nfs3.Createverf3{1, 2, 3, 4, 5, 6, 7, 8}),
		} {
			e.age(e.dir)
			before := e.attr(e.dir)
			res := e.create(e.dir, name, how)
			e.ok(res.Status)
			h := e.created(&res.Resok, before, name)
			a := e.attr(h)
			if a.Type != nfs3.NF3REG || a.Size != 0 || a.Nlink != 1 || name != "exclusive" && a.Mode != 0o604 {
				e.Errorf("%s: attributes %+v of a new file of mode 0604", name, a)
			}
		}
	}},
	{name: "attributes", run: func(e *env) {
		set := size(5)
		set.Mode = mode(0o640).Mode
		set.Mtime = nfs3.SetMtime{SetIt: nfs3.SET_TO_CLIENT_TIME, Mtime: old}
		res := e.create(e.dir, "f", guarded(set))
		e.ok(res.Status)
		h := e.made(&res.Resok.Obj, e.dir, "f")
		if a := e.attr(h); a.Mode != 0o640 || a.Size != 5 || a.Mtime != old {
			e.Errorf("attributes %+v, want mode 0640, size 5, time %v", a, old)
		}
		e.content("a new file of size 5", h, "\x00\x00\x00\x00\x00")
	}},
	{name: "guarded-over-file", run: func(e *env) {
		h := e.file(e.dir, "f", "data")
		before := e.attr(e.dir)
		res := e.create(e.dir, "f", guarded(size(0)))
		e.gotStatus(res.Status, nfs3.NFS3ERR_EXIST)
		e.wccIfAny("a refused CREATE", &res.Resfail.DirWcc, before, e.dir)
		e.content("after a refused CREATE", h, "data")
	}},
	{name: "unchecked-over-file", run: func(e *env) {
		h := e.file(e.dir, "f", "data")
		res := e.create(e.dir, "f", unchecked(nfs3.Sattr3{}))
		e.ok(res.Status)
		e.same("CREATE over a file", e.made(&res.Resok.Obj, e.dir, "f"), h)
		e.post("CREATE over a file", &res.Resok.ObjAttributes, h)
		e.content("after CREATE without a size", h, "data")
		res = e.create(e.dir, "f", unchecked(size(0)))
		e.ok(res.Status)
		e.same("CREATE over a file", e.made(&res.Resok.Obj, e.dir, "f"), h)
		e.content("after CREATE with a size of 0", h, "")
	}},
	{name: "over-others", run: func(e *env) {
		e.mustMkdir(e.dir, "d")
		e.mustSymlink(e.dir, "l", "nowhere")
		for _, name := range []string{"d", "l"} {
			e.gotStatus(e.create(e.dir, name, guarded(mode(0o644))).Status, nfs3.NFS3ERR_EXIST)
			e.gotStatus(e.create(e.dir, name, exclusive(nfs3.Createverf3{9})).Status, nfs3.NFS3ERR_EXIST)
			// ISDIR and INVAL are what Linux says; the RFC has EXIST for all.
			e.gotStatus(e.create(e.dir, name, unchecked(mode(0o644))).Status, nfs3.NFS3ERR_EXIST, nfs3.NFS3ERR_ISDIR, nfs3.NFS3ERR_INVAL)
		}
		e.gone(e.dir, "nowhere")
	}},
	{name: "exclusive-again", run: func(e *env) {
		// The same verifier is the same call, which had been done;
		// another is another client's.
		// The verifier is kept in times. Not every file system keeps all their bits.
		verf := nfs3.Createverf3{0, 1, 2, 3, 0, 5, 6, 7}
		res := e.create(e.dir, "f", exclusive(verf))
		e.ok(res.Status)
		h := e.made(&res.Resok.Obj, e.dir, "f")
		again := e.create(e.dir, "f", exclusive(verf))
		e.ok(again.Status)
		e.same("an exclusive CREATE made twice", e.made(&again.Resok.Obj, e.dir, "f"), h)
		verf[7]++
		before := e.attr(e.dir)
		other := e.create(e.dir, "f", exclusive(verf))
		e.gotStatus(other.Status, nfs3.NFS3ERR_EXIST)
		e.wccIfAny("a refused CREATE", &other.Resfail.DirWcc, before, e.dir)
		// A client sets the attributes next, and the times are times again.
		set := mode(0o640)
		set.Atime.SetIt, set.Mtime.SetIt = nfs3.SET_TO_SERVER_TIME, nfs3.SET_TO_SERVER_TIME
		e.ok(e.setattr(h, set).Status)
		a, dir := e.attr(h), e.attr(e.dir)
		if a.Mode != 0o640 || later(dir.Mtime, a.Mtime) {
			e.Errorf("attributes %+v behind an exclusive CREATE and SETATTR; the directory's: %+v", a, dir)
		}
	}},
	{name: "exclusive-over-file", run: func(e *env) {
		h := e.file(e.dir, "f", "data")
		e.gotStatus(e.create(e.dir, "f", exclusive(nfs3.Createverf3{1})).Status, nfs3.NFS3ERR_EXIST)
		e.content("after a refused CREATE", h, "data")
	}},
	{name: "dots", run: func(e *env) {
		for _, name := range []string{".", ".."} {
			e.gotStatus(e.create(e.dir, name, guarded(mode(0o644))).Status, nfs3.NFS3ERR_EXIST)
		}
	}},
	{name: "mode-unknown", run: func(e *env) {
		args := append(append(wireHandle(e.dir), wireHandle(handle("f"))...), words(3, 0, 0)...)
		e.refused(nfs3.NFSPROC3_CREATE, args, new(nfs3.CREATE3res), nfs3.NFS3ERR_INVAL)
		e.gone(e.dir, "f")
	}},
}

// created checks what CREATE and its like answer, and returns the handle.
func (e *env) created(r *nfs3.CREATE3resok, dirBefore nfs3.Fattr3, name string) handle {
	h := e.made(&r.Obj, e.dir, name)
	if n := len(h); n == 0 || n > nfs3.NFS3_FHSIZE {
		e.Errorf("%s: a handle of %d bytes", name, n)
	}
	e.same(name, h, e.find(e.dir, name))
	e.post("object of "+e.last, &r.ObjAttributes, h)
	e.wcc("directory of "+e.last, &r.DirWcc, dirBefore, e.dir)
	e.touched(e.last+" in a directory", e.dir)
	return h
}
