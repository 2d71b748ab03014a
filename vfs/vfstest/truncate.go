package vfstest

import "github.com/nfsbox/nfsbox/vfs"

var truncateTests = []test{
	{"shrinks", func(e *env) {
		h := e.mkfile(e.dir, "file", pattern(10_000))
		f := e.open(h, readWrite)
		for _, size := range []uint64{9_999, 8_192, 4_097, 4_096, 1, 0} {
			e.truncate(f, size)
			wantBytes(e, e.contentOf(f), pattern(10_000)[:size])
			if got := e.attr(h).Size; got != size {
				e.Errorf("size %d, want %d", got, size)
			}
		}
	}},
	{"grows", func(e *env) {
		f := e.open(e.mkfile(e.dir, "file", "content"), readWrite)
		e.truncate(f, 50_000)
		wantBytes(e, e.contentOf(f), "content"+zeros(49_993))
	}},
	{"cuts-for-good", func(e *env) {
		// Looks for what was cut off behind a file that grows again, by
		// size and by a write.
		f := e.open(e.mkfile(e.dir, "file", pattern(10_000)), readWrite)
		e.truncate(f, 5_000)
		e.truncate(f, 10_000)
		wantBytes(e, e.contentOf(f), pattern(10_000)[:5_000]+zeros(5_000))
		e.truncate(f, 100)
		e.writeTo(f, "end", 6_000)
		wantBytes(e, e.contentOf(f), pattern(10_000)[:100]+zeros(5_900)+"end")
	}},
	{"same-size", func(e *env) {
		f := e.open(e.mkfile(e.dir, "file", "content"), readWrite)
		e.truncate(f, 7)
		wantBytes(e, e.contentOf(f), "content")
	}},
	{"too-far", func(e *env) {
		f := e.open(e.mkfile(e.dir, "file", "content"), readWrite)
		for _, size := range []uint64{1 << 63, 1<<64 - 1} {
			_, err := f.Truncate(e.ctx, size)
			e.wantStatus(err, vfs.ErrFBig, vfs.ErrInval)
		}
		wantBytes(e, e.contentOf(f), "content")
	}},
	{"modifies", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		f := e.open(h, readWrite)
		e.age(h)
		before := e.attr(h)
		wcc, err := f.Truncate(e.ctx, 3)
		e.ok(err)
		e.wantModified(h)
		after := e.attr(h)
		e.checkWCC(&wcc, &before, &after)
	}},
}

// truncate sets the size, which must be allowed.
func (e *env) truncate(f vfs.File, size uint64) {
	e.Helper()
	_, err := f.Truncate(e.ctx, size)
	e.ok(err)
}
