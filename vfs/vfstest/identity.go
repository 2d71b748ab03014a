package vfstest

import "github.com/nfsbox/nfsbox/vfs"

var identityTests = []test{
	{"owner-of-new", func(e *env) {
		dir := e.public(0o777)
		for name, how := range map[string]*vfs.CreateHow{
			"file": fileHow(0o640), "dir": how(vfs.TypeDir, 0o750), "link": {Type: vfs.TypeSymlink, Target: "target"},
		} {
			if a := e.attr(e.owned(dir, name, how)); a.UID != owner.UID || a.GID != owner.GID {
				e.Errorf("%s belongs to %d:%d, want %d:%d", name, a.UID, a.GID, owner.UID, owner.GID)
			}
		}
	}},
	{"read", func(e *env) {
		h := e.owned(e.public(0o777), "file", fileHow(0o600))
		// An owner without the bit is not tried: NFS servers let it read all the
		// same, because an open file stays open (RFC 1813, section 4.4).
		for _, c := range classes[1:] {
			e.set(h, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600 | 4<<c.shift})
			for _, d := range classes[1:] {
				e.allowed(d.name, e.tryRead(d.who, h), c.shift == d.shift)
			}
			e.allowed("the owner", e.tryRead(owner, h), true)
		}
	}},
	{"write", func(e *env) {
		h := e.owned(e.public(0o777), "file", fileHow(0o600))
		for _, c := range classes[1:] {
			e.set(h, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600 | 2<<c.shift})
			for _, d := range classes[1:] {
				e.allowed(d.name, e.tryWrite(d.who, h), c.shift == d.shift)
			}
			e.allowed("the owner", e.tryWrite(owner, h), true)
		}
	}},
	{"lookup", func(e *env) {
		dir := e.owned(e.public(0o777), "dir", how(vfs.TypeDir, 0o700))
		e.owned(dir, "file", fileHow(0o644))
		e.byMode(0, 1, func(c *vfs.Caller, mode uint32) error {
			e.set(dir, vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode})
			_, _, _, err := e.fs.As(c).Lookup(e.ctx, dir, "file")
			return err
		})
	}},
	{"list", func(e *env) {
		dir := e.owned(e.public(0o777), "dir", how(vfs.TypeDir, 0o700))
		e.owned(dir, "file", fileHow(0o644))
		e.byMode(0, 4, func(c *vfs.Caller, mode uint32) error {
			e.set(dir, vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode})
			for _, err := range e.fs.As(c).ReadDir(e.ctx, dir, vfs.Pos{}, 0, 0) {
				if err != nil {
					return err
				}
			}
			return nil
		})
	}},
	{"create", func(e *env) {
		dir := e.owned(e.public(0o777), "dir", how(vfs.TypeDir, 0o700))
		for _, typ := range []vfs.Type{vfs.TypeReg, vfs.TypeDir, vfs.TypeSymlink} {
			how := how(typ, 0o755)
			how.Target = "target"
			e.byMode(0o111, 2, func(c *vfs.Caller, mode uint32) error {
				e.set(dir, vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode})
				_, _, _, err := e.fs.As(c).Create(e.ctx, dir, "new", how)
				if err == nil {
					e.remove(dir, "new", typ == vfs.TypeDir)
				}
				return err
			})
		}
		e.wantNames(dir)
	}},
	{"remove-and-rename", identityRemove},
	{"further-groups", identityGroups},
	{"access", identityAccess},
	{"class-that-counts", identityClass},
	{"sticky", identitySticky},
	{"chmod", identityChmod},
	{"chown", identityChown},
	{"chgrp", identityChgrp},
	{"times", identityTimes},
	{"truncate", identityTruncate},
	{"set-group-id-directory", identitySetGID},
	{"write-takes-set-user-id", identityTakesSetUID},
	{"superuser", identitySuperuser},
}

// The callers of these tests. None is in a group of another but the member.
var (
	owner  = &vfs.Caller{UID: 21001, GID: 21001}
	member = &vfs.Caller{UID: 21002, GID: 21002, Groups: []uint32{21002, 21001, 21007}}
	other  = &vfs.Caller{UID: 21003, GID: 21003, Groups: []uint32{21008}}
)

// public is a directory in which every user may make names.
func (e *env) public(mode uint32) vfs.Handle {
	e.Helper()
	e.set(e.dir, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o755})
	h := e.mkdir(e.dir, "public")
	e.set(h, vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode})
	return h
}

// owned is an object that belongs to owner, with that mode.
func (e *env) owned(dir vfs.Handle, name string, how *vfs.CreateHow) vfs.Handle {
	e.Helper()
	h, _, _, err := e.fs.As(owner).Create(e.ctx, dir, name, how)
	e.ok(err)
	return h
}

// allowed ends the test unless err is nil if the caller may, and else a refusal.
func (e *env) allowed(who string, err error, may bool) {
	e.Helper()
	if may && err != nil {
		e.Errorf("%s is refused: %v", who, err)
	}
	if !may {
		if s, _ := vfs.StatusOf(err); s != vfs.ErrAccess && s != vfs.ErrPerm {
			e.Errorf("%s gets %v, want to be refused", who, err)
		}
	}
}

// tryRead opens h as c and reads from it. Where the server does not know of opens, the
// read is refused.
func (e *env) tryRead(c *vfs.Caller, h vfs.Handle) error {
	return e.try(c, h, vfs.ShareRead, func(f vfs.File) error {
		_, _, err := f.ReadAt(e.ctx, make([]byte, 10), 0, nil)
		return err
	})
}

func (e *env) tryWrite(c *vfs.Caller, h vfs.Handle) error {
	return e.try(c, h, vfs.ShareWrite, func(f vfs.File) error {
		_, err := f.WriteAt(e.ctx, []byte("written"), 0, vfs.FileSync, new(vfs.Written))
		return err
	})
}

func (e *env) try(c *vfs.Caller, h vfs.Handle, access vfs.Share, do func(vfs.File) error) error {
	f, _, err := e.fs.As(c).Open(e.ctx, vfs.At{H: h}, &vfs.OpenHow{Access: access})
	if err != nil {
		return err
	}
	err = do(f)
	if closing := f.Close(e.ctx); err == nil {
		err = closing
	}
	return err
}

// classes are the three classes of a mode, and where their bits are.
var classes = []struct {
	name  string
	who   *vfs.Caller
	shift int
}{{"the owner", owner, 6}, {"the group", member, 3}, {"another", other, 0}}

// byMode tries a right for every class, under modes that give it to one of them
// alone.
func (e *env) byMode(base, bit uint32, try func(c *vfs.Caller, mode uint32) error) {
	e.Helper()
	for _, given := range classes {
		mode := base | bit<<given.shift
		for _, c := range classes {
			e.allowed(c.name, try(c.who, mode), c.shift == given.shift)
		}
	}
}
