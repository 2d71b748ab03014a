package vfstest

import (
	"slices"

	"github.com/nfsbox/nfsbox/vfs"
)

// aclTests are for an FS that is a vfs.ACLer. They are skipped for others, and where the
// file system below has no lists.
var aclTests = []test{
	{"of-mode", func(e *env) {
		e.acler()
		e.wantACL(e.create(e.dir, "file", fileHow(0o640)), vfs.ACL{Access: aclOf(6, 4, 0)})
		e.wantACL(e.create(e.dir, "dir", how(vfs.TypeDir, 0o751)), vfs.ACL{Access: aclOf(7, 5, 1)})
		e.wantACL(e.create(e.dir, "fifo", how(vfs.TypeFIFO, 0o606)), vfs.ACL{Access: aclOf(6, 0, 6)})
	}},
	{"set", func(e *env) {
		e.acler()
		h := e.mkfile(e.dir, "file", "")
		acl := vfs.ACL{Access: aclOf(6, 4, 0, aclMasked(6), aclUser(40001, 6), aclUser(40000, 2),
			vfs.ACLEntry{Tag: vfs.ACLGroup, ID: 40001, Perm: 1})}
		e.setACL(h, acl)
		e.wantACL(h, acl)
		acl.Access = aclOf(7, 0, 1, aclMasked(4), aclUser(40003, 7))
		e.setACL(h, acl)
		e.wantACL(h, acl)
	}},
	{"mask-is-added", func(e *env) {
		e.acler()
		h := e.mkfile(e.dir, "file", "")
		e.setACL(h, vfs.ACL{Access: aclOf(6, 4, 0, aclUser(40001, 2), vfs.ACLEntry{Tag: vfs.ACLGroup, ID: 7, Perm: 1})})
		e.wantACL(h, vfs.ACL{Access: aclOf(6, 4, 0, aclUser(40001, 2), vfs.ACLEntry{Tag: vfs.ACLGroup, ID: 7, Perm: 1}, aclMasked(7))})
	}},
	{"mode-follows", func(e *env) {
		e.acler()
		h := e.create(e.dir, "file", fileHow(0o644))
		e.age(h)
		before := e.attr(h)
		e.tick(&before)
		e.setACL(h, vfs.ACL{Access: aclOf(7, 4, 1, aclUser(40001, 2), aclMasked(3))})
		a := e.attr(h)
		if a.Mode != 0o731 {
			e.Errorf("mode %o, want 731: the mask stands where the group was", a.Mode)
		}
		if a.Change == before.Change {
			e.Error("the file has not changed, to those who look at Change")
		}
		e.wantUnmodified(h)
	}},
	{"chmod-moves-mask", func(e *env) {
		e.acler()
		h := e.mkfile(e.dir, "file", "")
		e.setACL(h, vfs.ACL{Access: aclOf(6, 4, 0, aclUser(40001, 6), aclMasked(6))})
		e.set(h, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o715})
		e.wantACL(h, vfs.ACL{Access: aclOf(7, 4, 5, aclUser(40001, 6), aclMasked(1))})
	}},
	{"minimal", func(e *env) {
		e.acler()
		h := e.mkfile(e.dir, "file", "")
		e.setACL(h, vfs.ACL{Access: aclOf(6, 4, 0, aclUser(40001, 7))})
		e.setACL(h, vfs.ACL{Access: aclOf(7, 1, 2)})
		e.wantACL(h, vfs.ACL{Access: aclOf(7, 1, 2)})
		if a := e.attr(h); a.Mode != 0o712 {
			e.Errorf("mode %o, want 712", a.Mode)
		}
		e.set(h, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o640})
		e.wantACL(h, vfs.ACL{Access: aclOf(6, 4, 0)})
	}},
	{"default", func(e *env) {
		e.acler()
		h := e.mkdir(e.dir, "dir")
		acl := vfs.ACL{Access: aclOf(7, 5, 0), Default: aclOf(7, 5, 0, aclUser(40001, 3), aclMasked(7))}
		e.setACL(h, acl)
		e.wantACL(h, acl)
		acl.Default = nil
		e.setACL(h, acl)
		e.wantACL(h, acl)
	}},
	{"inherited", func(e *env) {
		e.acler()
		dir := e.mkdir(e.dir, "dir")
		dflt := aclOf(7, 5, 0, aclUser(40001, 7), aclMasked(7))
		e.setACL(dir, vfs.ACL{Access: aclOf(7, 5, 0), Default: dflt})
		e.wantACL(e.create(dir, "file", fileHow(0o664)), vfs.ACL{Access: aclOf(6, 5, 0, aclUser(40001, 7), aclMasked(6))})
		e.wantACL(e.create(dir, "dir", how(vfs.TypeDir, 0o750)),
			vfs.ACL{Access: aclOf(7, 5, 0, aclUser(40001, 7), aclMasked(5)), Default: dflt})
	}},
	{"no-list", func(e *env) {
		// Sets lists that are invalid, and wants the former ones to stay.
		e.acler()
		h := e.mkdir(e.dir, "dir")
		was := vfs.ACL{Access: aclOf(7, 5, 0, aclUser(40001, 7), aclMasked(5)), Default: aclOf(7, 0, 0)}
		e.setACL(h, was)
		lists := map[string][]vfs.ACLEntry{
			"owner twice": aclOf(7, 5, 0, vfs.ACLEntry{Tag: vfs.ACLUserObj, Perm: 7}),
			"mask twice":  aclOf(7, 5, 0, aclMasked(1), aclMasked(1)),
			"user twice":  aclOf(7, 5, 0, aclMasked(7), aclUser(40001, 1), aclUser(40001, 2)),
			"no owner":    aclOf(7, 5, 0)[1:],
			"no others":   aclOf(7, 5, 0)[:2],
			"unknown tag": aclOf(7, 5, 0, vfs.ACLEntry{Tag: 0x40, Perm: 7}),
			"two tags":    aclOf(7, 5, 0, aclMasked(7), vfs.ACLEntry{Tag: vfs.ACLUser | vfs.ACLGroup, ID: 5, Perm: 7}),
			"too many":    aclOf(7, 5, 0, make([]vfs.ACLEntry, 1<<14)...),
		}
		for name, list := range lists {
			for _, acl := range []vfs.ACL{{Access: list, Default: was.Default}, {Access: was.Access, Default: list}} {
				if err := e.acler().SetACL(e.ctx, h, acl); err == nil {
					e.Errorf("%s is taken", name)
				} else {
					e.wantStatus(err, vfs.ErrInval)
				}
				e.wantACL(h, was)
			}
		}
		e.wantStatus(e.acler().SetACL(e.ctx, h, vfs.ACL{}), vfs.ErrInval)
		e.wantACL(h, was)
	}},
	{"unknown-rights", func(e *env) {
		// Gives rights that do not exist. They are refused, or left out.
		e.acler()
		h := e.create(e.dir, "file", fileHow(0o600))
		err := e.acler().SetACL(e.ctx, h, vfs.ACL{Access: aclOf(8|6, 5, 0)})
		if err == nil {
			e.wantACL(h, vfs.ACL{Access: aclOf(6, 5, 0)})
			return
		}
		e.wantStatus(err, vfs.ErrInval)
		e.wantACL(h, vfs.ACL{Access: aclOf(6, 0, 0)})
	}},
	{"no-directory", func(e *env) {
		e.acler()
		h := e.mkfile(e.dir, "file", "")
		was := vfs.ACL{Access: aclOf(7, 5, 0)}
		e.setACL(h, was)
		e.wantStatus(e.acler().SetACL(e.ctx, h, vfs.ACL{Access: aclOf(6, 6, 6), Default: aclOf(7, 5, 0)}), vfs.ErrInval, vfs.ErrAccess)
		e.wantACL(h, was)
		link := e.symlink(e.dir, "link", "file")
		if _, err := e.acler().ACL(e.ctx, link); err != nil {
			e.wantStatus(err, vfs.ErrNotSupp)
		}
		e.wantStatus(e.acler().SetACL(e.ctx, link, vfs.ACL{Access: aclOf(0, 0, 0)}), vfs.ErrNotSupp, vfs.ErrInval)
		e.wantACL(h, was) // and not that of what the link means
	}},
	{"stale", func(e *env) {
		e.acler()
		h := e.mkfile(e.dir, "file", "")
		e.remove(e.dir, "file", false)
		_, err := e.acler().ACL(e.ctx, h)
		e.wantStatus(err, vfs.ErrStale)
		e.wantStatus(e.acler().SetACL(e.ctx, h, vfs.ACL{Access: aclOf(6, 6, 6)}), vfs.ErrStale)
		_, err = e.acler().ACL(e.ctx, vfs.Handle{})
		e.wantStatus(err, vfs.ErrBadHandle, vfs.ErrStale)
		e.wantStatus(e.acler().SetACL(e.ctx, vfs.Handle{}, vfs.ACL{Access: aclOf(6, 6, 6)}), vfs.ErrBadHandle, vfs.ErrStale)
	}},
	{"renamed", func(e *env) {
		e.acler()
		h := e.mkfile(e.dir, "file", "")
		acl := vfs.ACL{Access: aclOf(6, 4, 0, aclUser(40001, 6), aclMasked(6))}
		e.setACL(h, acl)
		e.setACL(e.mkfile(e.dir, "new", ""), vfs.ACL{Access: aclOf(6, 4, 0, aclUser(40001, 4), aclMasked(4))})
		_, _, err := e.fs.Rename(e.ctx, e.dir, "file", e.dir, "new")
		e.ok(err)
		e.wantACL(e.mustLookup(e.dir, "new"), acl)
	}},
	{"linked", func(e *env) {
		e.acler()
		h := e.mkfile(e.dir, "file", "")
		e.link(h, e.dir, "link")
		acl := vfs.ACL{Access: aclOf(7, 1, 0, aclUser(40002, 1), aclMasked(1))}
		e.setACL(e.mustLookup(e.dir, "link"), acl)
		e.wantACL(e.mustLookup(e.dir, "file"), acl)
	}},
	{"survives-restart", func(e *env) {
		e.acler()
		h := e.mkdir(e.dir, "dir")
		acl := vfs.ACL{Access: aclOf(7, 5, 0, aclUser(40001, 7), aclMasked(5)), Default: aclOf(7, 0, 0)}
		e.setACL(h, acl)
		e.restart()
		e.wantACL(h, acl)
	}},
	{"grants", func(e *env) {
		// Checks that lists let in the users that they name, and keep others out.
		e.acler()
		if !e.config.Callers {
			e.Skip("this file system acts for one caller only")
		}
		h := e.owned(e.public(0o777), "file", fileHow(0o600))
		wants := func(c *vfs.Caller, want vfs.Access) {
			e.Helper()
			got, _, err := e.fs.As(c).Access(e.ctx, h, vfs.AccessRead|vfs.AccessModify)
			e.ok(err)
			if got != want {
				e.Errorf("caller %d has the rights %#x, want %#x", c.UID, got, want)
			}
		}
		wants(other, 0)
		e.setACL(h, vfs.ACL{Access: aclOf(4, 2, 0, aclUser(other.UID, 6), aclMasked(6))})
		wants(other, vfs.AccessRead|vfs.AccessModify)
		wants(owner, vfs.AccessRead)
		wants(member, vfs.AccessModify)
		e.allowed("who is on the list", e.mayRead(other, h), true)
		e.setACL(h, vfs.ACL{Access: aclOf(6, 4, 6, aclUser(other.UID, 6), aclMasked(2))})
		wants(other, vfs.AccessModify)
		wants(member, 0)
		wants(&vfs.Caller{UID: 29999, GID: 29999}, vfs.AccessRead|vfs.AccessModify)
		e.allowed("who is on the list, behind the mask", e.mayRead(other, h), false)
	}},
	{"owner-only", func(e *env) {
		e.acler()
		if !e.config.Callers {
			e.Skip("this file system acts for one caller only")
		}
		h := e.owned(e.public(0o777), "file", fileHow(0o666))
		set := func(c *vfs.Caller, acl vfs.ACL) error {
			e.Helper()
			a, ok := vfs.As[vfs.ACLer](e.fs.As(c))
			if !ok {
				e.Fatal("the view of another caller has no access control lists")
			}
			return a.SetACL(e.ctx, h, acl)
		}
		e.wantStatus(set(other, vfs.ACL{Access: aclOf(7, 7, 7)}), vfs.ErrPerm, vfs.ErrAccess)
		e.wantStatus(set(member, vfs.ACL{Access: aclOf(7, 7, 7)}), vfs.ErrPerm, vfs.ErrAccess)
		e.wantACL(h, vfs.ACL{Access: aclOf(6, 6, 6)})
		e.ok(set(owner, vfs.ACL{Access: aclOf(6, 4, 0, aclUser(member.UID, 0))}))
		e.wantACL(h, vfs.ACL{Access: aclOf(6, 4, 0, aclUser(member.UID, 0), aclMasked(4))})
	}},
	{"cancelled", func(e *env) {
		e.acler()
		h, ctx := e.create(e.dir, "file", fileHow(0o600)), e.ended()
		_, err := e.acler().ACL(ctx, h)
		e.cancelled("acl", err)
		e.cancelled("setacl", e.acler().SetACL(ctx, h, vfs.ACL{Access: aclOf(7, 7, 7)}))
		e.wantACL(h, vfs.ACL{Access: aclOf(6, 0, 0)})
	}},
}

// aclOf is an access list: the owner's rights, those of named users, the group's, and
// those of others.
func aclOf(owner, group, other uint32, named ...vfs.ACLEntry) []vfs.ACLEntry {
	return append([]vfs.ACLEntry{
		{Tag: vfs.ACLUserObj, Perm: owner}, {Tag: vfs.ACLGroupObj, Perm: group}, {Tag: vfs.ACLOther, Perm: other},
	}, named...)
}

func aclUser(id, perm uint32) vfs.ACLEntry {
	return vfs.ACLEntry{Tag: vfs.ACLUser, ID: id, Perm: perm}
}

func aclMasked(perm uint32) vfs.ACLEntry { return vfs.ACLEntry{Tag: vfs.ACLMask, Perm: perm} }

// acler is the power of e.fs, or the end of the test.
func (e *env) acler() vfs.ACLer {
	e.Helper()
	a, ok := vfs.As[vfs.ACLer](e.fs)
	if !ok {
		e.Skip("this file system has no access control lists")
	}
	if _, err := a.ACL(e.ctx, e.dir); err != nil {
		if s, _ := vfs.StatusOf(err); s == vfs.ErrNotSupp {
			e.Skip("what lies below has no access control lists")
		}
		e.Fatalf("acl: %v", err)
	}
	return a
}

func (e *env) setACL(h vfs.Handle, acl vfs.ACL) {
	e.Helper()
	e.ok(e.acler().SetACL(e.ctx, h, acl))
}

// wantACL ends the test unless h has these lists. The FS may order them as it likes, and
// without named entries it may have a mask that takes nothing away.
func (e *env) wantACL(h vfs.Handle, want vfs.ACL) {
	e.Helper()
	got, err := e.acler().ACL(e.ctx, h)
	e.ok(err)
	if !sameList(got.Access, want.Access) || !sameList(got.Default, want.Default) {
		e.Fatalf("access control lists\n%+v\nwant\n%+v", got, want)
	}
}

func sameList(a, b []vfs.ACLEntry) bool {
	tidy := func(list []vfs.ACLEntry) []vfs.ACLEntry {
		list = slices.Clone(list)
		slices.SortFunc(list, func(a, b vfs.ACLEntry) int {
			if a.Tag != b.Tag {
				return int(a.Tag) - int(b.Tag)
			}
			return int(a.ID) - int(b.ID)
		})
		return list
	}
	return slices.Equal(tidy(a), tidy(b))
}

func (e *env) mayRead(c *vfs.Caller, h vfs.Handle) error {
	f, _, err := e.fs.As(c).Open(e.ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return err
	}
	_, _, err = f.ReadAt(e.ctx, make([]byte, 1), 0, nil)
	e.ok(f.Close(e.ctx))
	return err
}
