package v3suite

import "github.com/nfsbox/nfsbox/proto/nfs3"

var fsstatTests = []test{
	{name: "numbers", run: func(e *env) {
		res := e.fsstat(e.export)
		e.ok(res.Status)
		r := &res.Resok
		e.post("FSSTAT", &r.ObjAttributes, e.export)
		if r.Tbytes == 0 || r.Fbytes > r.Tbytes || r.Abytes > r.Fbytes || r.Ffiles > r.Tfiles || r.Afiles > r.Ffiles {
			e.Errorf("free is more than all, or available more than free: %+v", r)
		}
	}},
	{name: "any-object", run: func(e *env) { e.ok(e.fsstat(e.file(e.dir, "f", "")).Status) }},
}

var fsinfoTests = []test{
	{name: "numbers", run: func(e *env) {
		res := e.fsinfo(e.export)
		e.ok(res.Status)
		r := &res.Resok
		e.post("FSINFO", &r.ObjAttributes, e.export)
		for _, s := range []struct {
			name            string
			most, pref, mul uint32
		}{{"READ", r.Rtmax, r.Rtpref, r.Rtmult}, {"WRITE", r.Wtmax, r.Wtpref, r.Wtmult}} {
			if s.most < 8192 || s.pref == 0 || s.pref > s.most || s.mul == 0 || s.mul > s.pref {
				e.Errorf("%s: at most %d, preferably %d, multiples of %d", s.name, s.most, s.pref, s.mul)
			}
		}
		if r.Dtpref < 512 || r.Maxfilesize < 1<<31-1 || r.TimeDelta.Seconds > 2 || r.TimeDelta == (nfs3.Nfstime3{}) {
			e.Errorf("dtpref %d, maxfilesize %d, time_delta %v", r.Dtpref, r.Maxfilesize, r.TimeDelta)
		}
		const all = nfs3.FSF3_LINK | nfs3.FSF3_SYMLINK | nfs3.FSF3_HOMOGENEOUS | nfs3.FSF3_CANSETTIME
		if r.Properties&^all != 0 {
			e.Errorf("properties %#x, of which the RFC knows %#x", r.Properties, all)
		}
	}},
	{name: "properties", run: func(e *env) {
		props := e.fsinfo(e.export).Resok.Properties
		h := e.file(e.dir, "f", "")
		for _, p := range []struct {
			bit    uint32
			name   string
			status nfs3.Nfsstat3
		}{
			{nfs3.FSF3_LINK, "LINK", e.link(h, e.dir, "l").Status},
			{nfs3.FSF3_SYMLINK, "SYMLINK", e.symlink(e.dir, "s", "x").Status},
		} {
			if (props&p.bit != 0) != (p.status == nfs3.NFS3_OK) {
				e.Errorf("%s is announced: %v; it answers %v", p.name, props&p.bit != 0, p.status)
			}
		}
	}},
	{name: "any-object", run: func(e *env) { e.ok(e.fsinfo(e.file(e.dir, "f", "")).Status) }},
}

var pathconfTests = []test{
	{name: "numbers", run: func(e *env) {
		for _, h := range []handle{e.dir, e.file(e.dir, "f", "")} {
			res := e.pathconf(h)
			e.ok(res.Status)
			r := &res.Resok
			e.post("PATHCONF", &r.ObjAttributes, h)
			if r.Linkmax == 0 || r.NameMax < 14 || !r.CasePreserving {
				e.Errorf("%+v", r)
			}
		}
	}},
	{name: "name-max-holds", run: func(e *env) {
		res := e.pathconf(e.dir)
		e.ok(res.Status)
		n := int(res.Resok.NameMax)
		e.file(e.dir, name(n), "")
		long := e.create(e.dir, name(n+1), guarded(mode(0o644)))
		if !res.Resok.NoTrunc {
			e.ok(long.Status)
			return
		}
		e.gotStatus(long.Status, nfs3.NFS3ERR_NAMETOOLONG)
	}},
	{name: "chown-restricted", needs: needsIdentities, run: func(e *env) {
		res := e.pathconf(e.dir)
		e.ok(res.Status)
		e.as(alice)
		h := e.file(e.dir, "f", "")
		status := e.setattr(h, nfs3.Sattr3{Uid: nfs3.SetUid3{SetIt: true, Uid: bob.UID}}).Status
		if res.Resok.ChownRestricted == (status == nfs3.NFS3_OK) {
			e.Errorf("chown_restricted %v, and giving a file away answers %v", res.Resok.ChownRestricted, status)
		}
	}},
}
