package v3suite

import "github.com/nfsbox/nfsbox/proto/nfs3"

var commitTests = []test{
	{name: "ranges", run: func(e *env) {
		h := e.file(e.dir, "f", "")
		verf := e.write(h, 0, "0123456789", nfs3.UNSTABLE).Resok.Verf
		for _, r := range []struct {
			off uint64
			n   uint32
		}{{0, 0}, {0, 10}, {3, 4}, {5, 0}, {0, 1 << 31}, {100, 100}} {
			before := e.attr(h)
			res := e.commit(h, r.off, r.n)
			e.ok(res.Status)
			e.wcc("COMMIT", &res.Resok.FileWcc, before, h)
			if res.Resok.Verf != verf {
				e.Errorf("COMMIT of %d at %d: verifier %x, and %x of the WRITE", r.n, r.off, res.Resok.Verf, verf)
			}
		}
		e.content("after COMMIT", h, "0123456789")
	}},
	{name: "changes-nothing", run: func(e *env) {
		h := e.file(e.dir, "f", "data")
		before := e.attr(h)
		e.ok(e.commit(h, 0, 0).Status)
		if after := e.attr(h); settled(after) != settled(before) {
			e.Errorf("attributes %+v have become %+v", before, after)
		}
	}},
	{name: "offset-overflow", run: func(e *env) {
		// The server commits the whole file, or says what is wrong.
		h := e.file(e.dir, "f", "data")
		e.gotStatus(e.commit(h, 1<<64-2, 10).Status, nfs3.NFS3_OK, nfs3.NFS3ERR_INVAL)
	}},
	{name: "not-a-file", run: func(e *env) {
		// The RFC lists no status for it. Servers find one; they do not say that
		// they have committed what is no file's data.
		e.gotStatus(e.commit(e.mustSymlink(e.dir, "l", "x"), 0, 0).Status, nfs3.NFS3ERR_INVAL, nfs3.NFS3ERR_BADTYPE)
	}},
}
