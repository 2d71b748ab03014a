package vfstest

import "github.com/nfsbox/nfsbox/vfs"

var writeTests = []test{
	{"extends", func(e *env) {
		h := e.mkfile(e.dir, "file", "")
		f := e.open(h, readWrite)
		want := pattern(300_000)
		for off := 0; off < len(want); off += 70_001 {
			e.writeTo(f, want[off:min(off+70_001, len(want))], uint64(off))
		}
		wantBytes(e, e.contentOf(f), want)
		if got := e.attr(h).Size; got != uint64(len(want)) {
			e.Errorf("size %d, want %d", got, len(want))
		}
	}},
	{"overwrites", func(e *env) {
		want := []byte(pattern(20_000))
		h := e.mkfile(e.dir, "file", string(want))
		f := e.open(h, readWrite)
		for _, off := range []int{0, 1, 4095, 4096, 8190, 19_990} {
			n := copy(want[off:], "0123456789")
			e.writeTo(f, "0123456789"[:n], uint64(off))
		}
		wantBytes(e, e.contentOf(f), string(want))
	}},
	{"behind-the-end", func(e *env) {
		h := e.mkfile(e.dir, "file", "abc")
		e.write(h, "xyz", 100_000)
		e.wantContent(h, "abc"+zeros(99_997)+"xyz")
	}},
	{"nothing", func(e *env) {
		h := e.mkfile(e.dir, "file", "abc")
		f := e.open(h, vfs.ShareWrite)
		for _, off := range []uint64{0, 3, 100} {
			n, err := f.WriteAt(e.ctx, nil, off, vfs.FileSync, new(vfs.Written))
			e.ok(err)
			if n != 0 {
				e.Errorf("%d bytes of none were written", n)
			}
		}
		e.wantContent(h, "abc")
	}},
	{"stability", func(e *env) {
		h := e.mkfile(e.dir, "file", "")
		f := e.open(h, vfs.ShareWrite)
		for how := vfs.Unstable; how <= vfs.FileSync; how++ {
			var w vfs.Written
			n, err := f.WriteAt(e.ctx, []byte("content"), 0, how, &w)
			e.ok(err)
			if n == 0 || w.Committed < how || w.Committed > vfs.FileSync {
				e.Errorf("%d bytes with stability %d, want at least %d", n, w.Committed, how)
			}
		}
		e.wantContent(h, "content")
	}},
	{"one-verifier", func(e *env) {
		// Writes to two files by turns. Both may have the same verifier or not,
		// but each must keep its own.
		files := [...]vfs.File{e.open(e.mkfile(e.dir, "a", ""), vfs.ShareWrite), e.open(e.mkfile(e.dir, "b", ""), vfs.ShareWrite)}
		var first [len(files)]vfs.Verifier
		for round := range 3 {
			for i, f := range files {
				var w vfs.Written
				_, err := f.WriteAt(e.ctx, []byte("content"), 0, vfs.Unstable, &w)
				e.ok(err)
				if round == 0 {
					first[i] = w.Verf
				}
				if w.Verf != first[i] {
					e.Errorf("the verifier went from %x to %x without a restart", first[i], w.Verf)
				}
			}
		}
	}},
	{"too-far", func(e *env) {
		h := e.mkfile(e.dir, "file", "abc")
		f := e.open(h, vfs.ShareWrite)
		for _, off := range []uint64{1<<63 - 1, 1 << 63, 1<<64 - 2} {
			_, err := f.WriteAt(e.ctx, []byte("content"), off, vfs.FileSync, new(vfs.Written))
			e.wantStatus(err, vfs.ErrFBig, vfs.ErrInval, vfs.ErrNoSpace)
		}
		e.wantContent(h, "abc")
	}},
	{"modifies", func(e *env) {
		h := e.mkfile(e.dir, "file", "abc")
		e.age(h)
		before := e.attr(h)
		w := e.written(h, "content")
		e.wantModified(h)
		after := e.attr(h)
		if after.Ctime.Before(before.Ctime) || after.Change < before.Change {
			e.Errorf("ctime went from %v to %v, change from %d to %d", before.Ctime, after.Ctime, before.Change, after.Change)
		}
		e.checkWCC(&w.WCC, &before, &after)
	}},
	{"leaves-the-buffer", func(e *env) {
		f := e.open(e.mkfile(e.dir, "file", ""), vfs.ShareWrite)
		p := []byte(pattern(100_000))
		_, err := vfs.WriteFull(e.ctx, f, p, 0, vfs.Unstable, new(vfs.Written))
		e.ok(err)
		wantBytes(e, string(p), pattern(100_000))
	}},
}

// written writes in one call, which must take all.
func (e *env) written(h vfs.Handle, content string) (w vfs.Written) {
	e.Helper()
	e.with(h, vfs.ShareWrite, func(f vfs.File) {
		n, err := f.WriteAt(e.ctx, []byte(content), 0, vfs.FileSync, &w)
		if err != nil || n != len(content) {
			e.Fatalf("write of %d bytes: %d, %v", len(content), n, err)
		}
	})
	return w
}
