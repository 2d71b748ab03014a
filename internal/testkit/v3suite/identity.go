package v3suite

import (
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// identityTests are what RFC 1813 leaves to POSIX, and section 4.4 to servers:
// who owns what is new, and which bits a mode loses.
var identityTests = []test{
	{name: "owner-of-what-is-new", needs: needsIdentities, run: func(e *env) {
		e.as(alice)
		l := e.mustSymlink(e.dir, "l", "x")
		for _, h := range []handle{e.file(e.dir, "f", ""), e.mustMkdir(e.dir, "d"), l} {
			if a := e.attr(h); a.Uid != alice.UID || a.Gid != alice.GID {
				e.Errorf("owner %d:%d of alice's, %d:%d", a.Uid, a.Gid, alice.UID, alice.GID)
			}
		}
	}},
	{name: "group-of-the-directory", needs: needsIdentities, run: func(e *env) {
		e.ok(e.setattr(e.dir, owner(0, 4000)).Status)
		e.ok(e.setattr(e.dir, mode(0o2777)).Status)
		e.as(alice)
		if a := e.attr(e.file(e.dir, "f", "")); a.Gid != 4000 || a.Mode&0o2000 != 0 {
			e.Errorf("group %d and mode %#o of a file in a directory of group 4000 and mode 02777", a.Gid, a.Mode)
		}
		if a := e.attr(e.mustSymlink(e.dir, "l", "x")); a.Gid != 4000 {
			e.Errorf("group %d of a symbolic link there", a.Gid)
		}
		res := e.mkdir(e.dir, "d", mode(0o755))
		e.ok(res.Status)
		if a := e.attr(e.made(&res.Resok.Obj, e.dir, "d")); a.Gid != 4000 || a.Mode&0o2000 == 0 {
			e.Errorf("group %d and mode %#o of a directory there", a.Gid, a.Mode)
		}
	}},
	{name: "sticky", needs: needsIdentities, run: func(e *env) {
		e.ok(e.setattr(e.dir, mode(0o1777)).Status)
		e.as(alice)
		e.file(e.dir, "f", "")
		e.mustMkdir(e.dir, "d")
		e.as(bob)
		e.file(e.dir, "b", "")
		// EPERM is what systems say, and the RFC lists ACCES.
		e.gotStatus(e.remove(e.dir, "f").Status, nfs3.NFS3ERR_ACCES, nfs3.NFS3ERR_PERM)
		e.gotStatus(e.rmdir(e.dir, "d").Status, nfs3.NFS3ERR_ACCES, nfs3.NFS3ERR_PERM)
		e.gotStatus(e.rename(e.dir, "f", e.dir, "g").Status, nfs3.NFS3ERR_ACCES, nfs3.NFS3ERR_PERM)
		e.gotStatus(e.rename(e.dir, "b", e.dir, "f").Status, nfs3.NFS3ERR_ACCES, nfs3.NFS3ERR_PERM)
		e.ok(e.remove(e.dir, "b").Status)
		e.as(alice)
		e.ok(e.remove(e.dir, "f").Status)
	}},
	{name: "write-clears-set-uid", needs: needsIdentities, run: func(e *env) {
		cleared(e, func(h handle) { e.ok(e.write(h, 0, "x", nfs3.FILE_SYNC).Status) })
	}},
	{name: "truncate-clears-set-uid", needs: needsIdentities, run: func(e *env) {
		cleared(e, func(h handle) { e.ok(e.setattr(h, size(0)).Status) })
	}},
	{name: "chown-clears-set-uid", needs: needsIdentities, run: func(e *env) {
		e.as(alice)
		h := e.file(e.dir, "f", "data")
		e.ok(e.setattr(h, mode(0o6755)).Status)
		e.ok(e.setattr(h, nfs3.Sattr3{Gid: nfs3.SetGid3{SetIt: true, Gid: alice.GIDs[1]}}).Status)
		if a := e.attr(h); a.Gid != alice.GIDs[1] || a.Mode&0o6000 != 0 {
			e.Errorf("group %d, mode %#o after a mere user changed the group of a file of mode 06755", a.Gid, a.Mode)
		}
	}},
	{name: "chmod-clears-set-gid-of-foreign-groups", needs: needsIdentities, run: func(e *env) {
		h := e.file(e.dir, "f", "data")
		e.ok(e.setattr(h, owner(alice.UID, bob.GID)).Status)
		e.as(alice)
		e.ok(e.setattr(h, mode(0o2755)).Status)
		if a := e.attr(h); a.Mode != 0o755 {
			e.Errorf("mode %#o set by one who is not in the file's group", a.Mode)
		}
	}},
	{name: "attributes-of-others", needs: needsIdentities, run: func(e *env) {
		e.as(alice)
		h := e.file(e.dir, "f", "data")
		before := e.attr(h)
		e.as(bob)
		at := nfs3.Sattr3{Mtime: nfs3.SetMtime{SetIt: nfs3.SET_TO_CLIENT_TIME, Mtime: old}}
		for _, set := range []nfs3.Sattr3{mode(0o777), owner(bob.UID, bob.GID), at} {
			res := e.setattr(h, set)
			e.gotStatus(res.Status, nfs3.NFS3ERR_PERM, nfs3.NFS3ERR_ACCES)
			e.wccIfAny("a refused SETATTR", &res.Resfail.ObjWcc, before, h)
		}
		// A caller that may write may say that it was now.
		e.ok(e.setattr(h, nfs3.Sattr3{
			Atime: nfs3.SetAtime{SetIt: nfs3.SET_TO_SERVER_TIME}, Mtime: nfs3.SetMtime{SetIt: nfs3.SET_TO_SERVER_TIME},
		}).Status)
		if a := e.attr(h); a.Mode != before.Mode || a.Uid != alice.UID {
			e.Errorf("%+v has become %+v", before, a)
		}
	}},
	{name: "giving-away", needs: needsIdentities, run: func(e *env) {
		e.as(alice)
		h := e.file(e.dir, "f", "")
		e.gotStatus(e.setattr(h, owner(bob.UID, alice.GID)).Status, nfs3.NFS3ERR_PERM)
		e.gotStatus(e.setattr(h, nfs3.Sattr3{Gid: nfs3.SetGid3{SetIt: true, Gid: bob.GID}}).Status, nfs3.NFS3ERR_PERM)
	}},
	{name: "resizing-denied", needs: needsIdentities, run: func(e *env) {
		h := e.file(e.dir, "f", "data")
		e.ok(e.setattr(h, mode(0o644)).Status)
		e.as(alice)
		e.gotStatus(e.setattr(h, size(0)).Status, nfs3.NFS3ERR_ACCES)
		e.asOwner()
		e.content("after a denied SETATTR", h, "data")
	}},
	{name: "owner-without-rights", needs: needsIdentities, run: func(e *env) {
		// Section 4.4: a client that had opened the file goes on after chmod.
		e.as(alice)
		h := e.file(e.dir, "f", "data")
		e.ok(e.setattr(h, mode(0)).Status)
		e.ok(e.read(h, 0, 4).Status)
		e.ok(e.write(h, 4, "more", nfs3.FILE_SYNC).Status)
		e.as(bob)
		e.gotStatus(e.read(h, 0, 4).Status, nfs3.NFS3ERR_ACCES)
	}},
	{name: "execution-reads", needs: needsIdentities, run: func(e *env) {
		// Section 4.4: to run a program a client must read it.
		h := e.file(e.dir, "f", "#!")
		e.ok(e.setattr(h, mode(0o711)).Status)
		e.as(alice)
		e.ok(e.read(h, 0, 2).Status)
	}},
	{name: "sixteen-groups", needs: needsIdentities, run: func(e *env) {
		h := e.file(e.dir, "f", "data")
		e.ok(e.setattr(h, owner(0, 6015)).Status)
		e.ok(e.setattr(h, mode(0o640)).Status)
		who := oncrpc.AuthSys{Machine: "v3suite", UID: 5000, GID: 5000}
		for i := range uint32(oncrpc.MaxGIDs) {
			who.GIDs = append(who.GIDs, 6000+i)
		}
		e.ok(e.as(who).read(h, 0, 4).Status)
		who.GIDs = who.GIDs[:oncrpc.MaxGIDs-1]
		e.gotStatus(e.as(who).read(h, 0, 4).Status, nfs3.NFS3ERR_ACCES)
	}},
}

// cleared lets bob change alice's set-uid file, which then is no longer one.
func cleared(e *env, change func(h handle)) {
	e.as(alice)
	h := e.file(e.dir, "f", "data")
	e.ok(e.setattr(h, mode(0o6777)).Status)
	e.as(bob)
	change(h)
	if a := e.attr(h); a.Mode != 0o777 {
		e.Errorf("mode %#o after another user changed a file of mode 06777", a.Mode)
	}
}
