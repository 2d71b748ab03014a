package vfstest

import (
	"fmt"
	"slices"

	"github.com/nfsbox/nfsbox/vfs"
)

var readdirTests = []test{
	{"empty", func(e *env) { e.wantNames(e.mkdir(e.dir, "dir")) }},
	{"all-types", func(e *env) {
		e.mkfile(e.dir, "file", "")
		e.mkdir(e.dir, "dir")
		e.symlink(e.dir, "link", "target")
		e.mkfile(e.dir, ".hidden", "")
		e.wantNames(e.dir, "file", "dir", "link", ".hidden")
		e.remove(e.dir, "file", false)
		e.rename(e.dir, "link", e.dir, "renamed")
		e.wantNames(e.dir, "dir", "renamed", ".hidden")
	}},
	{"attributes", func(e *env) {
		// Compares what came beside the names with what GetAttr says.
		want := map[string]vfs.Handle{
			"file": e.mkfile(e.dir, "file", "content"), "dir": e.mkdir(e.dir, "dir"), "link": e.symlink(e.dir, "link", "target"),
		}
		for entry, err := range e.fs.ReadDir(e.ctx, e.dir, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
			e.ok(err)
			name := string(entry.Name)
			a := e.attr(want[name])
			if entry.Attr.Has(vfs.MaskType|vfs.MaskSize|vfs.MaskFileID) &&
				(entry.Attr.Type != a.Type || entry.Attr.FileID != a.FileID || entry.Attr.Size != a.Size) {
				e.Errorf("%s: readdir says %+v, getattr %+v", name, entry.Attr, a)
			}
			if !entry.Handle.IsZero() {
				e.same(entry.Handle, want[name])
			}
			delete(want, name)
		}
		if len(want) != 0 {
			e.Errorf("%d entries are missing", len(want))
		}
	}},
	{"file-ids", func(e *env) {
		for i := range 5 {
			e.mkfile(e.dir, fmt.Sprintf("file-%d", i), "")
		}
		ids := make(map[string]uint64)
		for entry, err := range e.fs.ReadDir(e.ctx, e.dir, vfs.Pos{}, 0, 0) {
			e.ok(err)
			ids[string(entry.Name)] = entry.FileID
		}
		for name, id := range ids {
			if a := e.attr(e.mustLookup(e.dir, name)); a.FileID != id {
				e.Errorf("%s: file id %d from readdir, %d from getattr", name, id, a.FileID)
			}
		}
	}},
	{"stops", func(e *env) {
		// Leaves the iteration at every place.
		all := e.mkfiles(e.dir, 10)
		for stop := 1; stop <= len(all); stop++ {
			n := 0
			for _, err := range e.fs.ReadDir(e.ctx, e.dir, vfs.Pos{}, 0, 0) {
				e.ok(err)
				if n++; n == stop {
					break
				}
			}
		}
		e.wantNames(e.dir, all...)
	}},
	{"resumes-anywhere", func(e *env) {
		// Goes on behind every entry; nothing changes meanwhile, so that
		// the rest of the listing must be the same.
		e.mkfiles(e.dir, 25)
		all := e.places(e.dir, vfs.Pos{}, 0)
		if len(all) != 25 {
			e.Fatalf("%d entries, want 25", len(all))
		}
		for i := range all {
			rest := namesOf(e.places(e.dir, all[i].next, 0))
			if want := namesOf(all[i+1:]); !slices.Equal(rest, want) {
				e.Fatalf("behind entry %d: %.200q, want %.200q", i, rest, want)
			}
		}
	}},
	{"again", func(e *env) {
		e.mkfiles(e.dir, 25)
		listing := e.fs.ReadDir(e.ctx, e.dir, vfs.Pos{}, 0, 0)
		var names [2][]string
		for i := range names {
			for entry, err := range listing {
				e.ok(err)
				names[i] = append(names[i], string(entry.Name))
			}
		}
		if len(names[0]) != 25 || !slices.Equal(names[0], names[1]) {
			e.Errorf("one iterator lists %.200q, and then %.200q", names[0], names[1])
		}
	}},
	{"small-pages", func(e *env) {
		// Asks for pages that hold less and less.
		all := e.mkfiles(e.dir, 40)
		for _, maxBytes := range []uint32{1 << 20, 8192, 4096, 1024} {
			names := namesOf(e.places(e.dir, vfs.Pos{}, maxBytes))
			slices.Sort(names)
			if !slices.Equal(names, all) {
				e.Fatalf("pages of %d bytes list %.200q", maxBytes, names)
			}
		}
		n := 0
		for _, err := range e.fs.ReadDir(e.ctx, e.dir, vfs.Pos{}, 0, 1) {
			if err != nil {
				e.wantStatus(err, vfs.ErrTooSmall, vfs.ErrInval)
				return
			}
			n++
		}
		if n != len(all) {
			e.Errorf("pages of one byte list %d entries, want %d or TOOSMALL", n, len(all))
		}
	}},
	{"of-file", func(e *env) {
		e.wantStatus(e.listError(e.mkfile(e.dir, "file", ""), vfs.Pos{}), vfs.ErrNotDir)
		e.wantStatus(e.listError(e.symlink(e.dir, "link", "."), vfs.Pos{}), vfs.ErrNotDir, vfs.ErrInval)
	}},
	{"stale", func(e *env) {
		h := e.mkdir(e.dir, "dir")
		e.remove(e.dir, "dir", true)
		e.wantStatus(e.listError(h, vfs.Pos{}), vfs.ErrStale, vfs.ErrNoEnt)
	}},
	{"bad-cookie", func(e *env) {
		// Starts at places that no listing ever handed out. There must be no
		// crash, no endless listing and no other error than ErrBadCookie or ErrInval.
		e.mkfiles(e.dir, 10)
		for _, cookie := range []uint64{1, 2, 1 << 31, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
			from := vfs.Pos{Cookie: cookie, Verf: vfs.Verifier{1, 2, 3}}
			if err := e.listError(e.dir, from); err != nil {
				e.wantStatus(err, vfs.ErrBadCookie, vfs.ErrInval)
			}
		}
	}},
	{"name-is-borrowed", func(e *env) {
		// Overwrites the entry that it borrows, and must still get the next one
		// right.
		all := e.mkfiles(e.dir, 10)
		var names []string
		for entry, err := range e.fs.ReadDir(e.ctx, e.dir, vfs.Pos{}, 0, 0) {
			e.ok(err)
			names = append(names, string(entry.Name))
			clear(entry.Name)
		}
		slices.Sort(names)
		if !slices.Equal(names, all) {
			e.Errorf("%.200q, want %.200q", names, all)
		}
	}},
}

// mkfiles makes n files and returns their names, in order. It makes them from
// several goroutines: over a network, or on a disk that syncs, one by one would
// take many times as long.
func (e *env) mkfiles(dir vfs.Handle, n int) []string {
	e.Helper()
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("file-%05d", i)
	}
	e.together(func(worker int) error {
		for i := worker; i < n; i += workers {
			if _, _, _, err := e.fs.Create(e.ctx, dir, all[i], fileHow(0o644)); err != nil {
				return fmt.Errorf("create %s: %w", all[i], err)
			}
		}
		return nil
	})
	return all
}

// place is an entry that was listed, copied.
type place struct {
	name string
	next vfs.Pos
}

// places lists dir from a position.
func (e *env) places(dir vfs.Handle, from vfs.Pos, maxBytes uint32) []place {
	e.Helper()
	var all []place
	for entry, err := range e.fs.ReadDir(e.ctx, dir, from, 0, maxBytes) {
		e.ok(err)
		all = append(all, place{string(entry.Name), entry.Next})
	}
	return all
}

// namesOf are the names of places, in order.
func namesOf(all []place) []string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].name
	}
	return names
}

// listError lists dir and returns the error that ends it.
func (e *env) listError(dir vfs.Handle, from vfs.Pos) error {
	for _, err := range e.fs.ReadDir(e.ctx, dir, from, 0, 0) {
		if err != nil {
			return err
		}
	}
	return nil
}
