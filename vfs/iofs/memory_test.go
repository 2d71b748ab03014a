package iofs_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
)

// calls counts what a file system is asked.
type calls struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *calls) fault(_ context.Context, op string, _ vfs.Handle) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[string]int)
	}
	c.n[op]++
	return nil
}

// during counts the calls that do makes, by their names.
func (c *calls) during(do func()) map[string]int {
	c.mu.Lock()
	c.n = make(map[string]int)
	c.mu.Unlock()
	do()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func counted(tb testing.TB) (*tree, *calls) {
	c := new(calls)
	return &tree{tb, memfs.New(memfs.Options{Fault: c.fault})}, c
}

func wantCalls(t *testing.T, what string, got, want map[string]int) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestCallsOfPaths: the way to a directory is asked for once.
func TestCallsOfPaths(t *testing.T) {
	m, c := counted(t)
	m.dir("a")
	m.dir("a/b")
	m.dir("a/b/c")
	m.file("a/b/c/file", "contents")
	f := m.io()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	for _, step := range []struct {
		what string
		do   func()
		want map[string]int
	}{
		{"the first Stat", func() { _, err := f.Stat("a/b/c/file"); must(err) }, map[string]int{"lookup": 4}},
		{"the next Stat", func() { _, err := f.Stat("a/b/c/file"); must(err) }, map[string]int{"lookup": 1}},
		{"ReadDir", func() { _, err := f.ReadDir("a/b/c"); must(err) }, map[string]int{"readdir": 2}}, // the second is memfs's end
		{"ReadFile", func() { _, err := f.ReadFile("a/b/c/file"); must(err) }, map[string]int{"lookup": 1, "open": 1, "read": 1, "close": 1}},
		{"Open and Stat", func() {
			file, err := f.Open("a/b/c/file")
			must(err)
			_, err = file.Stat()
			must(err)
			must(file.Close())
		}, map[string]int{"lookup": 1, "open": 1, "close": 1}},
		{"WriteFile", func() { must(f.WriteFile("a/b/c/new", []byte("x"), 0o600)) }, map[string]int{"open": 1, "write": 1, "close": 1}},
		{"Mkdir and in it", func() {
			must(f.Mkdir("a/b/d", 0o700))
			must(f.Mkdir("a/b/d/e", 0o700))
		}, map[string]int{"create": 2}},
		{"what is not there", func() {
			if _, err := f.Stat("a/b/none"); !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		}, map[string]int{"lookup": 4}}, // believed only after the whole way was asked for
		{"in a Sub", func() {
			sub, err := fs.Sub(f, "a/b")
			must(err)
			_, err = fs.Stat(sub, "c/file")
			must(err)
		}, map[string]int{"lookup": 2}},
		{"as another caller", func() {
			_, err := f.As(&vfs.Caller{UID: 7}).Stat("a/b/c/file")
			must(err)
		}, map[string]int{"lookup": 4}},
	} {
		wantCalls(t, step.what, c.during(step.do), step.want)
	}
}

// TestCallsOfWalkDir: a walk costs each directory's listing, and no more.
func TestCallsOfWalkDir(t *testing.T) {
	m, c := counted(t)
	dirs := 1
	for i := range 5 {
		m.dir(fmt.Sprint(i))
		dirs++
		for j := range 5 {
			m.dir(fmt.Sprintf("%d/%d", i, j))
			dirs++
			for k := range 5 {
				m.file(fmt.Sprintf("%d/%d/%d", i, j, k), "")
			}
		}
	}
	f := m.io()
	got := c.during(func() {
		err := fs.WalkDir(f, ".", func(_ string, d fs.DirEntry, err error) error {
			if err == nil {
				_, err = d.Info()
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	wantCalls(t, "WalkDir", got, map[string]int{"getattr": 1, "readdir": 2 * dirs})
}

// TestMemoryIsBounded walks more directories than are remembered.
func TestMemoryIsBounded(t *testing.T) {
	m, c := counted(t)
	const n = 5000
	for i := range n {
		m.dir(fmt.Sprint(i))
	}
	f := m.io()
	got := c.during(func() {
		if err := fs.WalkDir(f, ".", func(_ string, _ fs.DirEntry, err error) error { return err }); err != nil {
			t.Error(err)
		}
	})
	if got["lookup"] < n/10 || got["lookup"] > n {
		t.Errorf("%v for %d directories", got, n)
	}
}

// TestMemoryAndOthers: what others move is found where it is, at once if an error
// tells, and else after a while.
func TestMemoryAndOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTree(t)
		m.dir("a")
		m.file("a/file", "first")
		f := m.io()
		read := func(want string) {
			t.Helper()
			if b, err := f.ReadFile("a/file"); string(b) != want || err != nil {
				t.Errorf("%q, %v; want %q", b, err, want)
			}
		}
		read("first")
		m.rename("a", "b")
		m.dir("a")
		m.file("a/file", "second")
		m.file("a/only here", "")
		if _, err := f.Stat("a/only here"); err != nil {
			t.Errorf("an error comes from memory: %v", err)
		}
		read("second")
		m.rename("a", "c")
		m.dir("a")
		m.file("a/file", "third")
		time.Sleep(4 * time.Second)
		read("third")
		m.rename("a", "d")
		if _, err := f.ReadDir("a"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		m.remove("d/file", false)
		m.remove("d", true)
		if _, err := f.ReadDir("a"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a directory that is gone: %v", err)
		}
	})
}

// TestMemoryAndOurselves: what the tree itself, or another view of it, moves is
// found at once.
func TestMemoryAndOurselves(t *testing.T) {
	for name, view := range map[string]func(*iofs.FS) *iofs.FS{
		"the same": func(f *iofs.FS) *iofs.FS { return f },
		"another context": func(f *iofs.FS) *iofs.FS {
			return f.WithContext(t.Context())
		},
		"another caller": func(f *iofs.FS) *iofs.FS { return f.As(nil) },
		"a tree below": func(f *iofs.FS) *iofs.FS {
			sub, err := f.Sub(".")
			if err != nil {
				t.Fatal(err)
			}
			return sub.(*iofs.FS)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newTree(t)
			m.dir("a")
			m.file("a/file", "first")
			m.dir("new")
			m.file("new/file", "second")
			f := m.io()
			if _, err := f.Stat("a/file"); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Stat("new/file"); err != nil {
				t.Fatal(err)
			}
			g := view(f)
			if err := errors.Join(g.Rename("a", "old"), g.Rename("new", "a")); err != nil {
				t.Fatal(err)
			}
			if b, err := f.ReadFile("a/file"); string(b) != "second" || err != nil {
				t.Errorf("%q, %v", b, err)
			}
			if err := errors.Join(g.RemoveAll("a"), g.Rename("old", "a")); err != nil {
				t.Fatal(err)
			}
			entries, err := f.ReadDir("a")
			if b, rerr := f.ReadFile("a/file"); len(entries) != 1 || string(b) != "first" || err != nil || rerr != nil {
				t.Errorf("%v, %v, %q, %v", entries, err, b, rerr)
			}
		})
	}
}

// TestMemoryIsOneCallers: what one caller may know is not told another.
func TestMemoryIsOneCallers(t *testing.T) {
	m := newTree(t)
	m.make("secret", vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o700}})
	m.dir("secret/public")
	m.file("secret/public/file", "")
	f := m.io()
	if _, err := f.Stat("secret/public/file"); err != nil {
		t.Fatal(err)
	}
	other := f.As(&vfs.Caller{UID: 7, GID: 7})
	if _, err := other.Stat("secret/public/file"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Stat: %v", err)
	}
	if _, err := other.ReadDir("secret/public"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("ReadDir: %v", err)
	}
	names := []string{}
	for e, err := range f.Entries("secret") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, e.Name())
	}
	if !slices.Equal(names, []string{"public"}) {
		t.Errorf("%q", names)
	}
}

// late is a file system whose answers to Lookup take their time: after does
// something meanwhile, once.
type late struct {
	vfs.FS
	after func()
}

func (l *late) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	h, attr, dirAttr, err := l.FS.Lookup(ctx, dir, name)
	if after := l.after; after != nil {
		l.after = nil
		after()
	}
	return h, attr, dirAttr, err
}

// TestMemoryOfLateAnswers: what was asked before a rename is not remembered after
// it.
func TestMemoryOfLateAnswers(t *testing.T) {
	m := newTree(t)
	m.dir("a")
	m.file("a/file", "first")
	m.dir("new")
	m.file("new/file", "second")
	l := &late{FS: m.fs}
	f := iofs.New(t.Context(), l, m.root())
	l.after = func() {
		if err := errors.Join(f.Rename("a", "old"), f.Rename("new", "a")); err != nil {
			t.Error(err)
		}
	}
	wantFile(t, f, "a/file", "first")
	wantFile(t, f, "a/file", "second")
}
