package v3suite

import (
	"strings"

	"github.com/nfsbox/nfsbox/proto/nfs3"
)

var setattrTests = []test{
	{name: "mode", run: func(e *env) {
		h := e.file(e.dir, "f", "")
		for _, m := range []uint32{0, 0o777, 0o4755, 0o1600, 0o644} {
			before := e.attr(h)
			res := e.setattr(h, mode(m))
			e.ok(res.Status)
			e.wcc("SETATTR", &res.Resok.ObjWcc, before, h)
			if got := e.attr(h).Mode; got != m {
				e.Errorf("mode %#o, want %#o", got, m)
			}
		}
	}},
	{name: "nothing", run: func(e *env) {
		h := e.file(e.dir, "f", "data")
		before := e.attr(h)
		res := e.setattr(h, nfs3.Sattr3{})
		e.ok(res.Status)
		e.wcc("SETATTR of nothing", &res.Resok.ObjWcc, before, h)
		after := e.attr(h)
		after.Ctime = before.Ctime // which may move
		if settled(after) != settled(before) {
			e.Errorf("attributes %+v have become %+v", before, after)
		}
	}},
	{name: "owner", needs: needsIdentities, run: func(e *env) {
		h := e.file(e.dir, "f", "")
		before := e.attr(h)
		res := e.setattr(h, owner(alice.UID, bob.GID))
		e.ok(res.Status)
		e.wcc("SETATTR", &res.Resok.ObjWcc, before, h)
		if a := e.attr(h); a.Uid != alice.UID || a.Gid != bob.GID {
			e.Errorf("owner %d:%d, want %d:%d", a.Uid, a.Gid, alice.UID, bob.GID)
		}
	}},
	{name: "size", run: setattrSize},
	{name: "size-and-mode", run: func(e *env) {
		h := e.file(e.dir, "f", "data")
		set := size(2)
		set.Mode = mode(0o600).Mode
		e.ok(e.setattr(h, set).Status)
		if a := e.attr(h); a.Size != 2 || a.Mode != 0o600 {
			e.Errorf("size %d and mode %#o, want 2 and 0600", a.Size, a.Mode)
		}
	}},
	{name: "size-beyond-the-largest", run: func(e *env) {
		h := e.file(e.dir, "f", "data")
		largest := e.fsinfo(h).Resok.Maxfilesize
		for _, n := range []uint64{largest + 1, 1 << 63, 1<<64 - 1} {
			if n <= largest {
				continue // no file is too large, or the sum has wrapped
			}
			// The RFC lists INVAL alone; FBIG is what WRITE says.
			e.gotStatus(e.setattr(h, size(n)).Status, nfs3.NFS3ERR_INVAL, nfs3.NFS3ERR_FBIG)
		}
		e.content("a file that could not grow so far", h, "data")
	}},
	{name: "size-of-others", run: func(e *env) {
		dir := e.mustMkdir(e.dir, "d")
		e.gotStatus(e.setattr(dir, size(0)).Status, nfs3.NFS3ERR_ISDIR, nfs3.NFS3ERR_INVAL)
		link := e.mustSymlink(e.dir, "l", "x")
		e.gotStatus(e.setattr(link, size(0)).Status, nfs3.NFS3ERR_INVAL)
	}},
	{name: "times", run: setattrTimes},
	{name: "invalid-times", run: func(e *env) {
		h := e.file(e.dir, "f", "")
		bad := nfs3.Nfstime3{Seconds: 1, Nseconds: 1e9}
		set := nfs3.Sattr3{Mtime: nfs3.SetMtime{SetIt: nfs3.SET_TO_CLIENT_TIME, Mtime: bad}}
		// It is no time; a server that carries over into the seconds is right, too.
		if res := e.setattr(h, set); e.gotStatus(res.Status, nfs3.NFS3_OK, nfs3.NFS3ERR_INVAL) {
			checkTimes(e, e.attr(h))
		}
	}},
	{name: "guard", run: func(e *env) {
		h := e.file(e.dir, "f", "")
		before := e.attr(h)
		wrong := before.Ctime
		wrong.Seconds--
		res := e.setattrIf(h, mode(0o600), nfs3.Sattrguard3{Check: true, ObjCtime: wrong})
		e.gotStatus(res.Status, nfs3.NFS3ERR_NOT_SYNC)
		e.wccIfAny("a guarded SETATTR", &res.Resfail.ObjWcc, before, h)
		if got := e.attr(h).Mode; got != before.Mode {
			e.Errorf("mode %#o, although the guard forbade it", got)
		}
		res = e.setattrIf(h, mode(0o600), nfs3.Sattrguard3{Check: true, ObjCtime: before.Ctime})
		e.ok(res.Status)
		if got := e.attr(h).Mode; got != 0o600 {
			e.Errorf("mode %#o, although the guard was right", got)
		}
	}},
}

func setattrSize(e *env) {
	h := e.file(e.dir, "f", "0123456789")
	for _, step := range []struct {
		size uint64
		want string
	}{
		{4, "0123"},
		{4, "0123"},
		{8, "0123\x00\x00\x00\x00"},
		{0, ""},
		{3, "\x00\x00\x00"},
		{70_000, strings.Repeat("\x00", 70_000)},
	} {
		e.age(h)
		before := e.attr(h)
		res := e.setattr(h, size(step.size))
		e.ok(res.Status)
		e.wcc("SETATTR", &res.Resok.ObjWcc, before, h)
		if got := e.attr(h).Size; got != step.size {
			e.Errorf("size %d, want %d", got, step.size)
		}
		e.content("after SETATTR of the size", h, step.want)
		if step.size != before.Size {
			e.touched("SETATTR of the size", h)
		}
	}
	// A sparse file: the size of it is not the space of it.
	const large = 1 << 32
	e.ok(e.setattr(h, size(large)).Status)
	if got := e.attr(h).Size; got != large {
		e.Errorf("size %d, want %d", got, uint64(large))
	}
	if res := e.read(h, large-1, 2); res.Status != nfs3.NFS3_OK || string(res.Resok.Data) != "\x00" || !res.Resok.Eof {
		e.Errorf("the last byte of a hole: %v %q eof %v", res.Status, res.Resok.Data, res.Resok.Eof)
	}
}

func setattrTimes(e *env) {
	h := e.file(e.dir, "f", "")
	delta := e.fsinfo(h).Resok.TimeDelta
	a, m := nfs3.Nfstime3{Seconds: 86400, Nseconds: 987654321}, nfs3.Nfstime3{Seconds: 1<<31 - 1, Nseconds: 123456789}
	if delta.Seconds > 0 || delta.Nseconds > 1 {
		a.Nseconds, m.Nseconds = 0, 0 // what the file system cannot keep
	}
	set := nfs3.Sattr3{
		Atime: nfs3.SetAtime{SetIt: nfs3.SET_TO_CLIENT_TIME, Atime: a},
		Mtime: nfs3.SetMtime{SetIt: nfs3.SET_TO_CLIENT_TIME, Mtime: m},
	}
	before := e.attr(h)
	res := e.setattr(h, set)
	e.ok(res.Status)
	e.wcc("SETATTR", &res.Resok.ObjWcc, before, h)
	after := e.attr(h)
	if after.Atime != a || after.Mtime != m {
		e.Errorf("times %v and %v, want %v and %v", after.Atime, after.Mtime, a, m)
	}
	if later(before.Ctime, after.Ctime) {
		e.Errorf("the change time went back from %v to %v", before.Ctime, after.Ctime)
	}
	// The server's time is its own: that of a change made just now.
	e.ok(e.setattr(h, nfs3.Sattr3{Mtime: nfs3.SetMtime{SetIt: nfs3.SET_TO_SERVER_TIME}}).Status)
	after = e.attr(h)
	if later(before.Mtime, after.Mtime) || after.Mtime == m {
		e.Errorf("the server's time is %v, and it was %v before", after.Mtime, before.Mtime)
	}
	if after.Atime != a {
		e.Errorf("the access time %v moved with the modification time to %v", a, after.Atime)
	}
	e.ok(e.setattr(h, nfs3.Sattr3{Atime: nfs3.SetAtime{SetIt: nfs3.SET_TO_SERVER_TIME}}).Status)
	if got := e.attr(h).Atime; got == a {
		e.Errorf("the access time is still %v", got)
	}
}
