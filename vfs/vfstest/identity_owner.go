package vfstest

import "github.com/nfsbox/nfsbox/vfs"

// identityRemove removes names by the mode of the directory; that of the object does not
// count.
func identityRemove(e *env) {
	dir := e.owned(e.public(0o777), "dir", how(vfs.TypeDir, 0o700))
	e.byMode(0o111, 2, func(c *vfs.Caller, mode uint32) error {
		e.set(dir, vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode})
		e.create(dir, "name", fileHow(0))
		_, _, err := e.fs.As(c).Rename(e.ctx, dir, "name", dir, "other")
		_, again := e.fs.As(c).Remove(e.ctx, dir, "other", false)
		if err == nil {
			return again
		}
		_, again = e.fs.As(c).Remove(e.ctx, dir, "name", false)
		e.allowed("who may not rename", again, false)
		e.remove(dir, "name", false)
		return err
	})
	e.wantNames(dir)
}

func identityGroups(e *env) {
	h := e.mkfile(e.public(0o777), "file", "content")
	e.set(h, vfs.SetAttr{Valid: vfs.MaskGID | vfs.MaskMode, GID: 21007, Mode: 0o640})
	e.allowed("a member of the group", e.tryRead(member, h), true)
	e.allowed("another", e.tryRead(other, h), false)
	e.allowed("a member of the group", e.tryWrite(member, h), false)
}

func identityAccess(e *env) {
	h := e.owned(e.public(0o777), "file", fileHow(0o640))
	for _, x := range []struct {
		who  *vfs.Caller
		want vfs.Access
	}{
		{owner, vfs.AccessRead | vfs.AccessModify | vfs.AccessExtend},
		{member, vfs.AccessRead},
		{other, 0},
	} {
		have, _, err := e.fs.As(x.who).Access(e.ctx, h, vfs.AccessRead|vfs.AccessModify|vfs.AccessExtend)
		e.ok(err)
		if have != x.want {
			e.Errorf("caller %d has %#x, want %#x", x.who.UID, have, x.want)
		}
	}
}

// identityClass denies to the group what all others may.
func identityClass(e *env) {
	h := e.owned(e.public(0o777), "file", fileHow(0o604))
	e.allowed("the group", e.tryRead(member, h), false)
	e.allowed("another", e.tryRead(other, h), true)
}

func identitySticky(e *env) {
	dir := e.public(0o1777)
	e.owned(dir, "file", fileHow(0o666))
	as := e.fs.As(other)
	_, err := as.Remove(e.ctx, dir, "file", false)
	e.allowed("another who removes", err, false)
	_, _, err = as.Rename(e.ctx, dir, "file", dir, "mine")
	e.allowed("another who renames", err, false)
	_, _, _, err = as.Create(e.ctx, dir, "own", fileHow(0o644))
	e.ok(err)
	_, _, err = as.Rename(e.ctx, dir, "own", dir, "file")
	e.allowed("another who replaces", err, false)
	e.wantNames(dir, "file", "own")
	_, err = e.fs.As(owner).Remove(e.ctx, dir, "file", false)
	e.allowed("the owner who removes", err, true)
	e.remove(dir, "own", false)
}

func identityChmod(e *env) {
	h := e.owned(e.public(0o777), "file", fileHow(0o666))
	set := &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}
	for _, c := range classes[1:] {
		_, err := e.fs.As(c.who).SetAttr(e.ctx, h, set, nil)
		e.allowed(c.name, err, false)
	}
	if got := e.attr(h).Mode; got != 0o666 {
		e.Errorf("mode %o, want 666 as before", got)
	}
	_, err := e.fs.As(owner).SetAttr(e.ctx, h, set, nil)
	e.allowed("the owner", err, true)
}

func identityChown(e *env) {
	h := e.owned(e.public(0o777), "file", fileHow(0o666))
	for _, c := range classes {
		for _, uid := range []uint32{other.UID, 0} {
			_, err := e.fs.As(c.who).SetAttr(e.ctx, h, &vfs.SetAttr{Valid: vfs.MaskUID, UID: uid}, nil)
			e.allowed(c.name, err, false)
		}
	}
	e.set(h, vfs.SetAttr{Valid: vfs.MaskUID | vfs.MaskGID, UID: other.UID, GID: other.GID})
	if a := e.attr(h); a.UID != other.UID || a.GID != other.GID {
		e.Errorf("the superuser gave the file to %d:%d, it belongs to %d:%d", other.UID, other.GID, a.UID, a.GID)
	}
}

func identityChgrp(e *env) {
	dir := e.public(0o777)
	h, _, _, err := e.fs.As(member).Create(e.ctx, dir, "file", fileHow(0o664))
	e.ok(err)
	_, err = e.fs.As(member).SetAttr(e.ctx, h, &vfs.SetAttr{Valid: vfs.MaskGID, GID: 21008}, nil)
	e.allowed("the owner, to a group of others", err, false)
	_, err = e.fs.As(other).SetAttr(e.ctx, h, &vfs.SetAttr{Valid: vfs.MaskGID, GID: 21008}, nil)
	e.allowed("another, to a group of their own", err, false)
	_, err = e.fs.As(member).SetAttr(e.ctx, h, &vfs.SetAttr{Valid: vfs.MaskGID, GID: 21007}, nil)
	e.allowed("the owner, to a further group", err, true)
	if got := e.attr(h).GID; got != 21007 {
		e.Errorf("group %d, want 21007", got)
	}
}

// identityTimes: the owner may set any time, and a caller that may write the present
// one.
func identityTimes(e *env) {
	h := e.owned(e.public(0o777), "file", fileHow(0o664))
	exact := &vfs.SetAttr{Valid: vfs.MaskAtime | vfs.MaskMtime, Atime: old, Mtime: old}
	now := &vfs.SetAttr{Valid: vfs.MaskAtime | vfs.MaskMtime, AtimeNow: true, MtimeNow: true}
	for i, c := range classes {
		_, err := e.fs.As(c.who).SetAttr(e.ctx, h, exact, nil)
		e.allowed(c.name+" who sets a time", err, i == 0)
		_, err = e.fs.As(c.who).SetAttr(e.ctx, h, now, nil)
		e.allowed(c.name+" who sets the present", err, i < 2)
	}
}

func identityTruncate(e *env) {
	h := e.owned(e.public(0o777), "file", fileHow(0o664))
	e.write(h, "content", 0)
	for i, c := range classes[1:] {
		_, err := e.fs.As(c.who).SetAttr(e.ctx, h, &vfs.SetAttr{Valid: vfs.MaskSize, Size: 3}, nil)
		e.allowed(c.name, err, i == 0)
	}
	e.wantContent(h, "con")
}

func identitySetGID(e *env) {
	dir := e.public(0o777)
	e.set(dir, vfs.SetAttr{Valid: vfs.MaskGID, GID: 21007})
	e.set(dir, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o2777})
	if got := e.attr(e.owned(dir, "file", fileHow(0o644))).GID; got != 21007 {
		e.Errorf("group %d of a file in a set-group-id directory, want 21007", got)
	}
	if a := e.attr(e.owned(dir, "dir", how(vfs.TypeDir, 0o755))); a.GID != 21007 || a.Mode&0o2000 == 0 {
		e.Errorf("group %d, mode %o of a directory in a set-group-id directory", a.GID, a.Mode)
	}
}

func identityTakesSetUID(e *env) {
	h := e.owned(e.public(0o777), "file", fileHow(0o777))
	e.set(h, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o6777})
	e.ok(e.tryWrite(other, h))
	if got := e.attr(h).Mode; got != 0o777 {
		e.Errorf("mode %o after a write by another, want 777", got)
	}
}

func identitySuperuser(e *env) {
	dir := e.owned(e.public(0o777), "dir", how(vfs.TypeDir, 0o700))
	h := e.owned(dir, "file", fileHow(0o600))
	e.set(h, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0})
	e.set(dir, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0})
	e.write(h, "content", 0)
	e.wantContent(e.mustLookup(dir, "file"), "content")
	e.wantNames(dir, "file")
	e.remove(dir, "file", false)
}
