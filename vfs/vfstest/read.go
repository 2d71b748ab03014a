package vfstest

import "github.com/nfsbox/nfsbox/vfs"

var readTests = []test{
	{"whole", func(e *env) {
		for _, n := range []int{1, 4095, 4096, 4097, 3<<20 + 17} {
			want := pattern(n)
			e.wantContent(e.mkfile(e.dir, "file", want), want)
			e.remove(e.dir, "file", false)
		}
	}},
	{"pieces", func(e *env) {
		// Reads at every kind of alignment.
		const size = 20_000
		want := pattern(size)
		f := e.open(e.mkfile(e.dir, "file", want), vfs.ShareRead)
		for _, n := range []int{1, 7, 4096, 5000} {
			for off := 0; off < size; off += 1777 {
				p := make([]byte, n)
				m, eof, err := vfs.ReadFull(e.ctx, f, p, uint64(off))
				e.ok(err)
				wantBytes(e, string(p[:m]), want[off:min(off+n, size)])
				if eof && off+n < size {
					e.Fatalf("the end is reported at %d of %d", off+m, size)
				}
			}
		}
	}},
	{"short-of-the-end", func(e *env) {
		// Fills the buffer exactly, one byte before the end.
		f := e.open(e.mkfile(e.dir, "file", "content"), vfs.ShareRead)
		p := make([]byte, 6)
		n, eof, err := f.ReadAt(e.ctx, p, 0, nil)
		e.ok(err)
		if n == 0 || eof {
			e.Errorf("%d bytes, eof %t; want some, and no end", n, eof)
		}
		p = make([]byte, 100)
		n, eof, err = vfs.ReadFull(e.ctx, f, p, 0)
		e.ok(err)
		if n != 7 || !eof {
			e.Errorf("%d bytes, eof %t; want 7 and the end", n, eof)
		}
	}},
	{"beyond-the-end", func(e *env) {
		f := e.open(e.mkfile(e.dir, "file", "content"), vfs.ShareRead)
		for _, off := range []uint64{7, 8, 4096, 1 << 30} {
			n, eof, err := f.ReadAt(e.ctx, make([]byte, 10), off, nil)
			e.ok(err)
			if n != 0 || !eof {
				e.Errorf("at %d: %d bytes, eof %t; want 0 and the end", off, n, eof)
			}
		}
	}},
	{"empty-file", func(e *env) {
		f := e.open(e.mkfile(e.dir, "file", ""), vfs.ShareRead)
		n, eof, err := f.ReadAt(e.ctx, make([]byte, 10), 0, nil)
		e.ok(err)
		if n != 0 || !eof {
			e.Errorf("%d bytes, eof %t; want 0 and the end", n, eof)
		}
	}},
	{"empty-buffer", func(e *env) {
		f := e.open(e.mkfile(e.dir, "file", "content"), vfs.ShareRead)
		n, eof, err := f.ReadAt(e.ctx, nil, 0, nil)
		e.ok(err)
		if n != 0 || eof {
			e.Errorf("%d bytes, eof %t; want 0, and no end", n, eof)
		}
	}},
	{"far-beyond", func(e *env) {
		// Reads where no file of this system can reach.
		f := e.open(e.mkfile(e.dir, "file", "content"), vfs.ShareRead)
		for _, off := range []uint64{1<<63 - 1, 1 << 63, 1<<64 - 1} {
			n, eof, err := f.ReadAt(e.ctx, make([]byte, 10), off, nil)
			if err != nil {
				e.wantStatus(err, vfs.ErrInval, vfs.ErrFBig)
				continue
			}
			if n != 0 || !eof {
				e.Errorf("at %d: %d bytes, eof %t; want 0 and the end", off, n, eof)
			}
		}
	}},
	{"attributes", func(e *env) {
		h := e.mkfile(e.dir, "file", "content")
		f := e.open(h, vfs.ShareRead)
		var post vfs.Attr
		_, _, err := f.ReadAt(e.ctx, make([]byte, 10), 0, &post)
		e.ok(err)
		a := e.attr(h)
		if post.Has(vfs.MaskV3) && (post.Size != 7 || post.FileID != a.FileID) {
			e.Errorf("read says %+v, getattr %+v", post, a)
		}
	}},
	{"leaves-the-rest", func(e *env) {
		// Reads into the middle of a larger buffer.
		f := e.open(e.mkfile(e.dir, "file", pattern(5000)), vfs.ShareRead)
		p := []byte(zeros(6000))
		n, _, err := vfs.ReadFull(e.ctx, f, p[500:1500:1500], 100)
		e.ok(err)
		wantBytes(e, string(p), zeros(500)+pattern(5000)[100:100+n]+zeros(5500-n))
	}},
}
