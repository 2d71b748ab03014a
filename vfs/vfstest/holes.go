package vfstest

import (
	"errors"
	"io"

	"github.com/nfsbox/nfsbox/vfs"
)

var holesTests = []test{
	{"walk", func(e *env) {
		// A file system need not make holes. What it reports as
		// a hole must read as zeros.
		const size = 4 << 20
		f, s := e.holeSeeker(e.mkfile(e.dir, "file", ""))
		e.truncate(f, size)
		data := pattern(64 << 10)
		e.writeTo(f, data, 1<<20)
		e.writeTo(f, data, 3<<20)
		all := e.extents(s)
		covered(e, all, 1<<20, 1<<20+64<<10)
		covered(e, all, 3<<20, 3<<20+64<<10)
		if last := all[len(all)-1]; last[1] > size {
			e.Errorf("data up to %d of %d", last[1], size)
		}
		content := []byte(e.contentOf(f))
		for _, x := range all {
			clear(content[x[0]:x[1]])
		}
		wantBytes(e, string(content), zeros(size))
	}},
	{"no-data", func(e *env) {
		f, s := e.holeSeeker(e.mkfile(e.dir, "file", ""))
		if _, err := s.NextData(e.ctx, 0); !errors.Is(err, io.EOF) {
			e.Errorf("data in an empty file: %v, want EOF", err)
		}
		e.truncate(f, 1<<20)
		hole, err := s.NextHole(e.ctx, 0)
		e.ok(err)
		if hole != 0 && hole != 1<<20 {
			e.Errorf("the first hole of a file without data is at %d", hole)
		}
	}},
	{"beyond-the-end", func(e *env) {
		f, s := e.holeSeeker(e.mkfile(e.dir, "file", ""))
		e.writeTo(f, pattern(10_000), 0)
		end, err := s.NextHole(e.ctx, 0)
		e.ok(err)
		if end != 10_000 {
			e.Errorf("the hole behind the last byte is at %d, want 10000", end)
		}
		for _, off := range []uint64{10_000, 10_001, 1 << 40} {
			if at, err := s.NextData(e.ctx, off); !errors.Is(err, io.EOF) {
				e.Errorf("data behind %d at %d, %v; want EOF", off, at, err)
			}
		}
	}},
	{"punched-by-truncate", func(e *env) {
		f, s := e.holeSeeker(e.mkfile(e.dir, "file", ""))
		e.writeTo(f, pattern(1<<20), 0)
		e.truncate(f, 4096)
		e.truncate(f, 1<<20)
		e.writeTo(f, "end", 1<<20)
		all := e.extents(s)
		covered(e, all, 0, 4096)
		covered(e, all, 1<<20, 1<<20+3)
		content := []byte(e.contentOf(f))
		wantBytes(e, string(content), pattern(1 << 20)[:4096]+zeros(1<<20-4096)+"end")
	}},
}

// holeSeeker opens h and finds the power to seek in it, or skips the test.
func (e *env) holeSeeker(h vfs.Handle) (vfs.File, vfs.HoleSeeker) {
	e.Helper()
	f := e.open(h, readWrite)
	s, ok := vfs.As[vfs.HoleSeeker](f)
	if !ok {
		e.Skip("files do not know their holes here")
	}
	if _, err := s.NextHole(e.ctx, 0); errors.Is(err, vfs.ErrNotSupp) {
		e.Skip("the server does not know holes")
	}
	return f, s
}

// maxExtents bounds a walk over a file of these tests.
const maxExtents = 1000

// extents walks over a file and returns [start, end) of all that is data.
func (e *env) extents(s vfs.HoleSeeker) [][2]uint64 {
	e.Helper()
	var all [][2]uint64
	off := uint64(0)
	for range maxExtents {
		start, err := s.NextData(e.ctx, off)
		if errors.Is(err, io.EOF) {
			return all
		}
		e.ok(err)
		end, err := s.NextHole(e.ctx, start)
		e.ok(err)
		if start < off || end <= start {
			e.Fatalf("from %d: data at %d, a hole at %d", off, start, end)
		}
		all = append(all, [2]uint64{start, end})
		off = end
	}
	e.Fatalf("more than %d extents", maxExtents)
	return nil
}

// covered ends the test unless [from, to) is data.
func covered(e *env, all [][2]uint64, from, to uint64) {
	e.Helper()
	for _, x := range all {
		if x[0] <= from && to <= x[1] {
			return
		}
	}
	e.Fatalf("[%d, %d) was written, and is a hole: data is %v", from, to, all)
}
