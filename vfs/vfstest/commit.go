package vfstest

import "github.com/nfsbox/nfsbox/vfs"

var commitTests = []test{
	{"verifier-of-the-writes", func(e *env) {
		f := e.open(e.mkfile(e.dir, "file", ""), readWrite)
		for range 3 {
			w := e.unstable(f, pattern(50_000))
			if c := e.commit(f); c.Verf != w.Verf {
				e.Fatalf("verifier %x of the commit, %x of the write before it", c.Verf, w.Verf)
			}
		}
		wantBytes(e, e.contentOf(f), pattern(50_000))
	}},
	{"part", func(e *env) {
		f := e.open(e.mkfile(e.dir, "file", ""), readWrite)
		w := e.unstable(f, pattern(50_000))
		for _, off := range []uint64{0, 1, 4096, 49_999} {
			var c vfs.Written
			e.ok(f.Commit(e.ctx, off, 1, &c))
			if c.Verf != w.Verf {
				e.Fatalf("verifier %x of the commit, %x of the write before it", c.Verf, w.Verf)
			}
		}
	}},
	{"nothing-written", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		f := e.open(h, readWrite)
		e.age(h)
		before := e.attr(h)
		w := e.commit(f)
		e.wantUnmodified(h)
		after := e.attr(h)
		e.checkWCC(&w.WCC, &before, &after)
	}},
	{"beyond-the-end", func(e *env) {
		f := e.open(e.mkfile(e.dir, "file", "content"), readWrite)
		for _, r := range [][2]uint64{{100, 0}, {7, 1}, {1 << 40, 1 << 40}, {1<<63 - 1, 0}} {
			if err := f.Commit(e.ctx, r[0], r[1], new(vfs.Written)); err != nil {
				e.wantStatus(err, vfs.ErrInval)
			}
		}
		wantBytes(e, e.contentOf(f), "content")
	}},
	{"survives-restart", func(e *env) {
		// Restarts after a commit and after a stable write.
		a, b := e.mkfile(e.dir, "a", ""), e.mkfile(e.dir, "b", "")
		e.with(a, readWrite, func(f vfs.File) {
			w := e.unstable(f, pattern(50_000))
			if c := e.commit(f); c.Verf != w.Verf {
				e.Fatalf("verifier %x of the commit, %x of the write before it", c.Verf, w.Verf)
			}
		})
		e.write(b, pattern(40_000), 0)
		e.restart()
		e.wantContent(a, pattern(50_000))
		e.wantContent(b, pattern(40_000))
	}},
	{"restart-is-noticed", func(e *env) {
		// Restarts before the commit. Then the verifier changes, or nothing is
		// lost.
		h := e.mkfile(e.dir, "file", "")
		var w vfs.Written
		e.with(h, readWrite, func(f vfs.File) { w = e.unstable(f, pattern(50_000)) })
		e.restart()
		f := e.open(h, readWrite)
		if w.Committed == vfs.Unstable && e.commit(f).Verf != w.Verf {
			e.unstable(f, pattern(50_000))
			e.commit(f)
		}
		wantBytes(e, e.contentOf(f), pattern(50_000))
	}},
}

// unstable writes content without making it stable.
func (e *env) unstable(f vfs.File, content string) vfs.Written {
	e.Helper()
	var w vfs.Written
	n, err := vfs.WriteFull(e.ctx, f, []byte(content), 0, vfs.Unstable, &w)
	if err != nil || n != len(content) {
		e.Fatalf("write of %d bytes: %d, %v", len(content), n, err)
	}
	return w
}

func (e *env) commit(f vfs.File) vfs.Written {
	e.Helper()
	var w vfs.Written
	e.ok(f.Commit(e.ctx, 0, 0, &w))
	if w.Committed != vfs.FileSync {
		e.Fatalf("a commit reports stability %d, want %d", w.Committed, vfs.FileSync)
	}
	return w
}
