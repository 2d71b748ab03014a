package v3suite

import (
	"fmt"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// All rights of ACCESS, and those that mean something for files and directories.
const (
	accessAll  = nfs3.ACCESS3_READ | nfs3.ACCESS3_LOOKUP | nfs3.ACCESS3_MODIFY | nfs3.ACCESS3_EXTEND | nfs3.ACCESS3_DELETE | nfs3.ACCESS3_EXECUTE
	accessFile = nfs3.ACCESS3_READ | nfs3.ACCESS3_MODIFY | nfs3.ACCESS3_EXTEND | nfs3.ACCESS3_EXECUTE
	accessDir  = nfs3.ACCESS3_READ | nfs3.ACCESS3_LOOKUP | nfs3.ACCESS3_MODIFY | nfs3.ACCESS3_EXTEND | nfs3.ACCESS3_DELETE
)

var accessTests = []test{
	{name: "owner", run: func(e *env) {
		h := e.file(e.dir, "f", "")
		res := e.access(h, accessAll)
		e.ok(res.Status)
		e.post("ACCESS", &res.Resok.ObjAttributes, h)
		const want = nfs3.ACCESS3_READ | nfs3.ACCESS3_MODIFY | nfs3.ACCESS3_EXTEND
		if got := res.Resok.Access; got&want != want || got&nfs3.ACCESS3_EXECUTE != 0 {
			e.Errorf("rights %#x on one's own file of mode 0666", got)
		}
		res = e.access(e.dir, accessAll)
		e.ok(res.Status)
		if got := res.Resok.Access; got&accessDir != accessDir {
			e.Errorf("rights %#x on one's own directory of mode 0777, want %#x", got, accessDir)
		}
	}},
	{name: "only-what-was-asked", run: func(e *env) {
		h := e.file(e.dir, "f", "")
		for bit := uint32(1); bit <= accessAll; bit <<= 1 {
			res := e.access(h, bit)
			e.ok(res.Status)
			if res.Resok.Access&^bit != 0 {
				e.Errorf("asked for %#x, got %#x", bit, res.Resok.Access)
			}
		}
		res := e.access(h, 0)
		e.ok(res.Status)
		if res.Resok.Access != 0 {
			e.Errorf("asked for nothing, got %#x", res.Resok.Access)
		}
	}},
	{name: "modes-of-files", needs: needsIdentities, run: func(e *env) { accessModes(e, e.file(e.dir, "o", ""), accessFile) }},
	{name: "modes-of-directories", needs: needsIdentities, run: func(e *env) { accessModes(e, e.mustMkdir(e.dir, "o"), accessDir) }},
	{name: "superuser", needs: needsIdentities, run: func(e *env) {
		h := e.file(e.dir, "f", "")
		e.ok(e.setattr(h, mode(0)).Status)
		const want = nfs3.ACCESS3_READ | nfs3.ACCESS3_MODIFY | nfs3.ACCESS3_EXTEND
		if got := e.access(h, accessFile).Resok.Access; got != want {
			e.Errorf("rights %#x of the superuser on a file of mode 0, want %#x", got, want)
		}
	}},
}

// accessModes tries every class of caller against every bit of the mode of an
// object of alice's and group 3000.
func accessModes(e *env, h handle, ask uint32) {
	const group = 3000
	e.ok(e.setattr(h, owner(alice.UID, group)).Status)
	dir := ask&nfs3.ACCESS3_LOOKUP != 0
	callers := []struct {
		auth  oncrpc.AuthSys
		shift uint
	}{
		{alice, 6},
		{oncrpc.AuthSys{UID: 5000, GID: group}, 3},
		{oncrpc.AuthSys{UID: 5000, GID: 1, GIDs: []uint32{7, group}}, 3},
		{oncrpc.AuthSys{UID: 5000, GID: 1}, 0},
	}
	for perm := range uint32(8) {
		for _, c := range callers {
			e.asOwner()
			e.ok(e.setattr(h, mode(perm<<c.shift)).Status)
			e.as(c.auth)
			res := e.access(h, ask)
			e.ok(res.Status)
			want, got := rights(perm, dir), res.Resok.Access
			if dir && perm&3 == 2 {
				// To write without the right to search comes to nothing; whether
				// it is called a right is left to servers.
				got &^= nfs3.ACCESS3_MODIFY | nfs3.ACCESS3_EXTEND | nfs3.ACCESS3_DELETE
			}
			if got != want {
				e.Errorf("%s: rights %#x, want %#x", fmt.Sprintf("uid %d gid %d %v, mode %#o", c.auth.UID, c.auth.GID, c.auth.GIDs, perm<<c.shift), got, want)
			}
		}
	}
}

// rights are those of ACCESS that three bits of a mode give.
func rights(perm uint32, dir bool) (r uint32) {
	if perm&4 != 0 {
		r |= nfs3.ACCESS3_READ
	}
	if perm&1 != 0 && dir {
		r |= nfs3.ACCESS3_LOOKUP
	}
	if perm&1 != 0 && !dir {
		r |= nfs3.ACCESS3_EXECUTE
	}
	if perm&2 != 0 && !dir {
		r |= nfs3.ACCESS3_MODIFY | nfs3.ACCESS3_EXTEND
	}
	if perm&3 == 3 && dir {
		r |= nfs3.ACCESS3_MODIFY | nfs3.ACCESS3_EXTEND | nfs3.ACCESS3_DELETE
	}
	return r
}
