package vfstest

import (
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

var setattrTests = []test{
	{"mode", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		for _, mode := range []uint32{0o600, 0o444, 0o777, 0o4755, 0o640} {
			e.set(h, vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode})
			if got := e.attr(h).Mode; got != mode {
				e.Errorf("mode %04o, want %04o", got, mode)
			}
		}
		e.wantContent(h, "content")
	}},
	{"mode-of-directory", func(e *env) {
		h := e.mkdir(e.dir, "dir")
		for _, mode := range []uint32{0o700, 0o1777, 0o755} {
			e.set(h, vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode})
			if got := e.attr(h); got.Mode != mode || got.Type != vfs.TypeDir {
				e.Errorf("%s of mode %04o, want %04o", got.Type, got.Mode, mode)
			}
		}
	}},
	{"own-ids", func(e *env) {
		// Sets owner and group to what they are, which needs no right.
		h := e.mkfile(e.dir, "file", "")
		a := e.attr(h)
		e.set(h, vfs.SetAttr{Valid: vfs.MaskUID | vfs.MaskGID, UID: a.UID, GID: a.GID})
		if b := e.attr(h); b.UID != a.UID || b.GID != a.GID {
			e.Errorf("owner %d:%d, want %d:%d", b.UID, b.GID, a.UID, a.GID)
		}
	}},
	{"size-shrinks", func(e *env) {
		h := e.mkfile(e.dir, "file", "0123456789")
		e.age(h)
		e.set(h, vfs.SetAttr{Valid: vfs.MaskSize, Size: 4})
		e.wantModified(h)
		e.wantContent(h, "0123")
		e.set(h, vfs.SetAttr{Valid: vfs.MaskSize, Size: 8})
		e.wantContent(h, "0123"+zeros(4))
		e.set(h, vfs.SetAttr{Valid: vfs.MaskSize})
		e.wantContent(h, "")
	}},
	{"size-grows-with-zeros", func(e *env) {
		h := e.mkfile(e.dir, "file", "abc")
		e.set(h, vfs.SetAttr{Valid: vfs.MaskSize, Size: 10_000})
		if got := e.attr(h).Size; got != 10_000 {
			e.Errorf("size %d, want 10000", got)
		}
		e.wantContent(h, "abc"+zeros(9997))
	}},
	{"size-of-directory", func(e *env) {
		h := e.mkdir(e.dir, "dir")
		_, err := e.fs.SetAttr(e.ctx, h, &vfs.SetAttr{Valid: vfs.MaskSize, Size: 0}, nil)
		e.wantStatus(err, vfs.ErrIsDir, vfs.ErrInval)
		e.mkfile(h, "still-a-directory", "")
	}},
	{"times-exactly", func(e *env) {
		// Sets times that a file system with the claimed resolution can keep
		// exactly.
		delta := max(1, e.info(vfs.InfoLimits).TimeDelta.Nanoseconds())
		h := e.mkfile(e.dir, "file", "")
		for _, at := range []time.Time{
			time.Unix(0, 0), time.Unix(1, 999_999_999), time.Unix(1_234_567_890, 123_456_789), time.Unix(2_000_000_000, 1),
		} {
			// Counted from the epoch, as the wire does; Truncate counts from year 1.
			at = time.Unix(0, at.UnixNano()/delta*delta)
			later := at.Add(5 * time.Second)
			e.set(h, vfs.SetAttr{Valid: vfs.MaskAtime | vfs.MaskMtime, Atime: at, Mtime: later})
			if a := e.attr(h); !a.Atime.Equal(at) || !a.Mtime.Equal(later) {
				e.Errorf("atime %v, want %v; mtime %v, want %v", a.Atime, at, a.Mtime, later)
			}
		}
		before := e.attr(h)
		e.set(h, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: old})
		if a := e.attr(h); !a.Mtime.Equal(old) || !a.Atime.Equal(before.Atime) {
			e.Errorf("mtime %v, want %v; atime %v, want %v", a.Mtime, old, a.Atime, before.Atime)
		}
	}},
	{"time-now", func(e *env) {
		h := e.mkfile(e.dir, "file", "")
		e.age(h)
		e.set(h, vfs.SetAttr{Valid: vfs.MaskMtime, MtimeNow: true, Mtime: old})
		e.wantModified(h)
		if a := e.attr(h); !a.Atime.Equal(old) {
			e.Errorf("atime has moved to %v with mtime", a.Atime)
		}
		e.set(h, vfs.SetAttr{Valid: vfs.MaskAtime, AtimeNow: true, Atime: old})
		if a := e.attr(h); !a.Atime.After(old) {
			e.Errorf("atime is still %v", a.Atime)
		}
	}},
	{"size-and-times", func(e *env) {
		// What restoring a file asks: the size must not move the
		// times that are set with it.
		h := e.mkfile(e.dir, "file", "content")
		e.set(h, vfs.SetAttr{Valid: vfs.MaskSize | vfs.MaskMode | vfs.MaskMtime | vfs.MaskAtime, Size: 3, Mode: 0o600, Mtime: old, Atime: old})
		if a := e.attr(h); a.Size != 3 || a.Mode != 0o600 || !a.Mtime.Equal(old) {
			e.Errorf("size %d, mode %o, mtime %v; want 3, 600, %v", a.Size, a.Mode, a.Mtime, old)
		}
	}},
	{"nothing", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		e.age(h)
		before := e.attr(h)
		e.set(h, vfs.SetAttr{Mode: 0o777, Size: 1, Mtime: time.Unix(1, 0)})
		e.wantUnmodified(h)
		if a := e.attr(h); a.Mode != before.Mode || a.Size != before.Size {
			e.Errorf("mode %o, size %d; want %o, %d as before", a.Mode, a.Size, before.Mode, before.Size)
		}
	}},
	{"guard-matches", func(e *env) {
		h := e.mkfile(e.dir, "file", "")
		ctime := e.attr(h).Ctime
		_, err := e.fs.SetAttr(e.ctx, h, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}, &ctime)
		e.ok(err)
		if got := e.attr(h).Mode; got != 0o600 {
			e.Errorf("mode %o, want 600", got)
		}
	}},
	{"guard-refuses", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		for _, off := range []time.Duration{-time.Second, time.Second} {
			guard := e.attr(h).Ctime.Add(off)
			_, err := e.fs.SetAttr(e.ctx, h, &vfs.SetAttr{Valid: vfs.MaskMode | vfs.MaskSize, Mode: 0o600}, &guard)
			e.wantStatus(err, vfs.ErrNotSync)
		}
		if a := e.attr(h); a.Mode != 0o644 || a.Size != 7 {
			e.Errorf("mode %o, size %d were changed in spite of the guard", a.Mode, a.Size)
		}
	}},
	{"ctime-moves-on", func(e *env) {
		h := e.mkfile(e.dir, "file", "")
		before := e.attr(h)
		wcc, err := e.fs.SetAttr(e.ctx, h, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}, nil)
		e.ok(err)
		after := e.attr(h)
		if after.Ctime.Before(before.Ctime) || after.Change < before.Change {
			e.Errorf("ctime went from %v to %v, change from %d to %d", before.Ctime, after.Ctime, before.Change, after.Change)
		}
		e.checkWCC(&wcc, &before, &after)
	}},
}
