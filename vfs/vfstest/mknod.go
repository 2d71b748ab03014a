package vfstest

import "github.com/nfsbox/nfsbox/vfs"

var mknodTests = []test{
	{"fifo", func(e *env) { e.mknod(vfs.TypeFIFO) }},
	{"socket", func(e *env) { e.mknod(vfs.TypeSocket) }},
	{"devices", func(e *env) {
		// Makes the device of /dev/null, which does no harm if it is left.
		for _, typ := range []vfs.Type{vfs.TypeChar, vfs.TypeBlock} {
			how := how(typ, 0o600)
			how.Rdev = 1<<32 | 3
			h, _, _, err := e.fs.Create(e.ctx, e.dir, typ.String(), how)
			if err != nil {
				e.wantStatus(err, vfs.ErrPerm, vfs.ErrAccess, vfs.ErrNotSupp, vfs.ErrBadType)
				continue
			}
			if a := e.attr(h); a.Type != typ || a.Rdev != how.Rdev {
				e.Errorf("a new %s %#x, want a %s %#x", a.Type, a.Rdev, typ, how.Rdev)
			}
		}
	}},
	{"existing", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		_, _, _, err := e.fs.Create(e.ctx, e.dir, "file", how(vfs.TypeFIFO, 0o644))
		e.wantStatus(err, vfs.ErrExist, vfs.ErrNotSupp, vfs.ErrBadType)
		e.wantContent(h, "content")
	}},
}

func (e *env) mknod(typ vfs.Type) {
	e.Helper()
	h, _, _, err := e.fs.Create(e.ctx, e.dir, "node", how(typ, 0o640))
	if err != nil {
		e.wantStatus(err, vfs.ErrNotSupp, vfs.ErrBadType, vfs.ErrPerm, vfs.ErrAccess)
		e.Skipf("no %s can be made here: %v", typ, err)
	}
	if a := e.attr(h); a.Type != typ || a.Mode != 0o640 || a.Size != 0 || a.Nlink != 1 {
		e.Errorf("a new %s of mode %o, size %d, %d names; want a %s, 640, 0, 1", a.Type, a.Mode, a.Size, a.Nlink, typ)
	}
	_, err = e.fs.Remove(e.ctx, e.dir, "node", false)
	e.ok(err)
	e.gone(e.dir, "node")
}
