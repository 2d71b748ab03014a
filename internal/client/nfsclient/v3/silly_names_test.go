package v3_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// watched is a desk over memory that notes what the server is asked for.
type watched struct {
	*desk
	mem     *memfs.FS
	lookups atomic.Int64
	before  atomic.Pointer[func()] // run once, before the next SETATTR
}

func newWatched(t *testing.T) *watched {
	w := new(watched)
	w.mem = memfs.New(memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		switch op {
		case "lookup":
			w.lookups.Add(1)
		case "setattr":
			if f := w.before.Swap(nil); f != nil {
				(*f)()
			}
		}
		return nil
	}})
	w.desk = newDesk(t, w.mem)
	return w
}

func (w *watched) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// file makes a file that nobody has open.
func (w *watched) file(name string) {
	w.Helper()
	w.close(w.open(name))
}

// existing opens what has that name already.
func (w *watched) existing(name string, trunc bool) vfs.File {
	w.Helper()
	f, _, err := w.fs.Open(w.Context(), vfs.At{Dir: w.dir, Name: name}, &vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite, Trunc: trunc})
	w.must(err)
	return f
}

// TestNamesThatNothingOpenCanHave are replaced and removed without a LOOKUP, however
// many files are open, as long as it is known what those are called.
func TestNamesThatNothingOpenCanHave(t *testing.T) {
	w := newWatched(t)
	for _, name := range []string{"a", "b", "c", "found"} {
		w.file(name)
	}
	made := w.open("made")
	w.lookups.Store(0)
	w.must(w.rename("a", "b"))
	w.must(w.rename("b", "new"))
	w.remove("new")
	if n := w.lookups.Load(); n != 0 {
		t.Errorf("%d LOOKUPs beside a file that was made", n)
	}
	found := w.existing("found", false)
	w.lookups.Store(0)
	w.must(w.rename("c", "d"))
	w.remove("d")
	if n := w.lookups.Load(); n != 0 {
		t.Errorf("%d LOOKUPs beside a file that was found under its only name", n)
	}
	w.close(made)
	w.close(found)
	w.names("found", "made")
}

// TestNamesAreKnownAgain when the files are closed whose names were not.
func TestNamesAreKnownAgain(t *testing.T) {
	w := newWatched(t)
	f := w.open("before")
	w.must(w.rename("before", "f"))
	g := w.existing("f", false)
	h, _, _, err := w.fs.Lookup(t.Context(), w.dir, "f")
	w.must(err)
	byHandle, _, err := w.fs.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	w.must(err)
	if _, _, err := w.fs.Open(t.Context(), vfs.At{Dir: w.dir, Name: "missing"}, &vfs.OpenHow{Access: vfs.ShareRead}); err == nil {
		t.Fatal("a missing file was opened")
	}
	for i, f := range []vfs.File{g, f, byHandle} {
		w.file("x")
		w.lookups.Store(0)
		w.must(w.rename("x", "missing"))
		// g was found under its only name; of the other two nobody knows.
		if n := w.lookups.Load(); n != 1 {
			t.Errorf("%d files are closed: %d LOOKUPs, want 1", i, n)
		}
		w.close(f)
	}
	w.file("x")
	w.lookups.Store(0)
	w.must(w.rename("x", "missing"))
	if n := w.lookups.Load(); n != 0 {
		t.Errorf("all are closed: %d LOOKUPs", n)
	}
}

// waysToTarget end with a file open whose only name is "target".
var waysToTarget = map[string]func(w *watched) vfs.File{
	"made": func(w *watched) vfs.File { return w.open("target") },
	"found": func(w *watched) vfs.File {
		w.file("target")
		return w.existing("target", false)
	},
	"of another case": func(w *watched) vfs.File {
		f := w.open("TARGET")
		_, _, err := w.mem.Rename(w.Context(), w.root(), "TARGET", w.root(), "target") // as if the server folded it
		w.must(err)
		return f
	},
	"renamed": func(w *watched) vfs.File {
		f := w.open("before")
		w.must(w.rename("before", "between"))
		w.must(w.rename("between", "target"))
		return f
	},
	"linked, the first name removed": func(w *watched) vfs.File {
		f := w.open("before")
		w.link("before", "target")
		w.remove("before")
		return f
	},
	"linked, the first name replaced": func(w *watched) vfs.File {
		f := w.open("before")
		w.link("before", "target")
		w.file("other")
		w.must(w.rename("other", "before"))
		return f
	},
	"found under one of two names": func(w *watched) vfs.File {
		w.file("before")
		w.link("before", "target")
		f := w.existing("before", false)
		w.must(w.removeBelow("before"))
		return f
	},
	"opened by its handle": func(w *watched) vfs.File {
		w.file("target")
		h, _, _, err := w.fs.Lookup(w.Context(), w.dir, "target")
		w.must(err)
		f, _, err := w.fs.Open(w.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
		w.must(err)
		return f
	},
	"renamed while it is opened": func(w *watched) vfs.File {
		w.file("before")
		var err error
		rename := func() { err = w.rename("before", "target") }
		w.before.Store(&rename)
		f := w.existing("before", true)
		w.must(err)
		return f
	},
}

// TestNamesThatOpenFilesGet takes the name of a file that this client has open, and
// finds it alive under a hidden one, however it came to that name.
func TestNamesThatOpenFilesGet(t *testing.T) {
	for what, open := range waysToTarget {
		for _, replaced := range []bool{true, false} {
			t.Run(what, func(t *testing.T) {
				w := newWatched(t)
				f := open(w)
				if replaced {
					w.file("source")
					w.must(w.rename("source", "target"))
				} else {
					w.remove("target")
				}
				var buf [1]byte
				if _, _, err := f.ReadAt(t.Context(), buf[:], 0, nil); err != nil {
					t.Errorf("replaced %t: %v", replaced, err)
				}
				w.close(f)
			})
		}
	}
}

func (w *watched) root() vfs.Handle {
	w.Helper()
	h, _, err := w.mem.Root(w.Context())
	w.must(err)
	return h
}

// removeBelow removes a name behind the client's back.
func (w *watched) removeBelow(name string) error {
	_, err := w.mem.Remove(w.Context(), w.root(), name, false)
	return err
}
