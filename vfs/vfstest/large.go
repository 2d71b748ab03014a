package vfstest

import (
	"fmt"
	"slices"

	"github.com/nfsbox/nfsbox/vfs"
)

var largeTests = []test{
	{"file-beyond-4-gib", func(e *env) {
		if e.info(vfs.InfoLimits).MaxFileSize < 2*farOff {
			e.Skip("files cannot be that large here")
		}
		h := e.mkfile(e.dir, "file", "start")
		f := e.open(h, readWrite)
		e.writeTo(f, pattern(10_000), farOff)
		if got := e.attr(h).Size; got != farOff+10_000 {
			e.Fatalf("size %d, want %d", got, farOff+10_000)
		}
		for off, want := range map[uint64]string{
			0: "start" + zeros(100), 1 << 32: zeros(105), farOff - 5: zeros(5) + pattern(10_000)[:100], farOff + 9_900: pattern(10_000)[9_900:],
		} {
			p := make([]byte, 105)
			n, eof, err := vfs.ReadFull(e.ctx, f, p, off)
			e.ok(err)
			wantBytes(e, string(p[:n]), want)
			if eof != (off == farOff+9_900) {
				e.Errorf("at %d: eof %t", off, eof)
			}
		}
		e.truncate(f, farOff+1)
		if got := e.attr(h).Size; got != farOff+1 {
			e.Errorf("size %d, want %d", got, farOff+1)
		}
		e.set(h, vfs.SetAttr{Valid: vfs.MaskSize, Size: 5})
		e.wantContent(h, "start")
	}},
	{"directory", func(e *env) {
		// Lists in small pages, as a whole and from places in the
		// middle.
		want := e.mkfiles(e.dir, manyFiles)
		all := e.places(e.dir, vfs.Pos{}, smallBytes)
		names := namesOf(all)
		slices.Sort(names)
		if !slices.Equal(names, want) {
			e.Fatalf("%d entries, %d names; want %d", len(all), len(slices.Compact(names)), len(want))
		}
		for _, i := range []int{0, 1, 1234, manyFiles / 2, manyFiles - 2, manyFiles - 1} {
			rest := namesOf(e.places(e.dir, all[i].next, smallBytes))
			if !slices.Equal(rest, namesOf(all[i+1:])) {
				e.Fatalf("behind entry %d come %d entries, want the %d that came before", i, len(rest), manyFiles-1-i)
			}
		}
	}},
	{"resumes-after-restart", func(e *env) {
		// Goes on in the middle after a restart. A server may have
		// forgotten the place (RFC 1813, section 3.3.16), but must say so.
		want := e.mkfiles(e.dir, someFiles)
		all := e.places(e.dir, vfs.Pos{}, smallBytes)
		e.restart()
		const half = someFiles / 2
		names := namesOf(all[:half])
		for entry, err := range e.fs.ReadDir(e.ctx, e.dir, all[half-1].next, 0, smallBytes) {
			if err != nil {
				e.wantStatus(err, vfs.ErrBadCookie)
				return
			}
			names = append(names, string(entry.Name))
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			e.Errorf("%d entries, want %d once each", len(names), len(want))
		}
	}},
	{"changes-while-listed", largeChanges},
	{"emptied-while-listed", func(e *env) {
		// Removes what it lists, as rm -r does.
		dir := e.mkdir(e.dir, "dir")
		e.mkfiles(dir, someFiles)
		n := 0
		for entry, err := range e.fs.ReadDir(e.ctx, dir, vfs.Pos{}, 0, smallBytes) {
			e.ok(err)
			e.remove(dir, string(entry.Name), false)
			n++
		}
		if n != someFiles {
			e.Errorf("%d entries were listed, want %d", n, someFiles)
		}
		e.remove(e.dir, "dir", true)
	}},
}

// The sizes of these tests: a file whose offsets do not fit 32 bits, and
// directories that do not fit a page.
const (
	farOff     = uint64(5 << 30)
	manyFiles  = 3000
	someFiles  = 400
	smallBytes = 1024
)

// largeChanges creates, removes and renames other entries while it lists, and stores the
// place where it goes on.
func largeChanges(e *env) {
	lasting := e.mkfiles(e.dir, someFiles)
	for i := range someFiles {
		e.create(e.dir, fmt.Sprintf("passing-%d", i), fileHow(0o644))
	}
	seen := make(map[string]int)
	var at vfs.Pos
	n := 0
	// New names may be listed or not. Twice as many as ever exist are an endless listing.
	for range 4 * someFiles {
		more := false
		for entry, err := range e.fs.ReadDir(e.ctx, e.dir, at, 0, smallBytes) {
			e.ok(err)
			seen[string(entry.Name)]++
			at, more = entry.Next, true
			if n++; n%7 == 0 {
				break
			}
		}
		if !more {
			break
		}
		if n%7 == 0 && n/7 < someFiles {
			e.remove(e.dir, fmt.Sprintf("passing-%d", someFiles-n/7), false)
			e.create(e.dir, fmt.Sprintf("new-%d", n), fileHow(0o644))
		}
	}
	for _, name := range lasting {
		if seen[name] != 1 {
			e.Fatalf("%s was there throughout, and was listed %d times", name, seen[name])
		}
	}
}
