package scan

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// tree is a file system in memory that tests fill.
type tree struct {
	testing.TB
	*memfs.FS
	root vfs.Handle
}

func newTree(t testing.TB, o memfs.Options) *tree {
	t.Helper()
	f := memfs.New(o)
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &tree{t, f, root}
}

func (t *tree) make(dir vfs.Handle, name string, how vfs.CreateHow) vfs.Handle {
	t.Helper()
	h, _, _, err := t.Create(t.Context(), dir, name, &how)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (t *tree) dir(in vfs.Handle, name string) vfs.Handle {
	t.Helper()
	return t.make(in, name, vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o755}})
}

func (t *tree) file(in vfs.Handle, name string, size uint64) vfs.Handle {
	t.Helper()
	return t.make(in, name, vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode | vfs.MaskSize, Mode: 0o644, Size: size}})
}

func (t *tree) link(h, in vfs.Handle, name string) {
	t.Helper()
	if _, _, err := t.Link(t.Context(), h, in, name); err != nil {
		t.Fatal(err)
	}
}

// TestUsage: each directory comes after what lies below it, with the sum of that; an object with two names counts once.
func TestUsage(t *testing.T) {
	for _, parallel := range []int{1, 8} {
		f := newTree(t, memfs.Options{})
		top := f.dir(f.root, "top")
		var want uint64
		for i := range 300 {
			sub := f.dir(top, fmt.Sprint("d", i))
			h := f.file(sub, "f", uint64(i))
			f.link(h, top, fmt.Sprint("again", i))
			want += uint64(i)
		}
		var got Sum
		u := &Usage{
			Links:  NewLinks(),
			Failed: func(*walk.Dir, string, error) bool { t.Error("failed"); return true },
		}
		u.Dir = func(d *walk.Dir, s Sum) error { // the root's call is the last
			if d.Parent == nil {
				got = s
			} else if s.Entries != 2 && s.Entries != 1 {
				t.Errorf("%s has %d entries", d.Path(""), s.Entries)
			}
			return nil
		}
		if err := walk.Tree(t.Context(), f, top, walk.Options{Parallel: parallel}, u); err != nil {
			t.Fatal(err)
		}
		if got.Size != want || got.Entries != 601 || got.Short || u.Links.Names() != 300 {
			t.Errorf("%+v, %d further names; want %d bytes of 601 objects, and 300", got, u.Links.Names(), want)
		}
	}
}

// TestUsageIsShort: a directory that cannot be listed makes the sums above it, and no others, the least that there is.
func TestUsageIsShort(t *testing.T) {
	broken := errors.New("broken")
	var bad vfs.Handle
	f := newTree(t, memfs.Options{Fault: func(_ context.Context, op string, h vfs.Handle) error {
		if op == "readdir" && h == bad {
			return broken
		}
		return nil
	}})
	a, b := f.dir(f.root, "a"), f.dir(f.root, "b")
	bad = f.dir(a, "bad")
	f.file(b, "f", 7)
	got, failed := make(map[string]Sum), 0
	u := &Usage{
		Dir:    func(d *walk.Dir, s Sum) error { got[d.Path("")] = s; return nil },
		Failed: func(_ *walk.Dir, _ string, err error) bool { failed++; return errors.Is(err, broken) },
	}
	if err := walk.Tree(t.Context(), f, f.root, walk.Options{Parallel: 1}, u); err != nil {
		t.Fatal(err)
	}
	if failed != 1 || !got["a/bad"].Short || !got["a"].Short || !got["."].Short || got["b"].Short || got["."].Size != 7 || got["."].Entries != 5 {
		t.Errorf("%d have failed: %+v", failed, got)
	}
}

// TestLinksAtTheBound: what comes beyond it counts with each name, and is counted as such.
func TestLinksAtTheBound(t *testing.T) {
	l := NewLinks()
	l.max = 2
	a := vfs.Attr{Valid: vfs.MaskV3, Type: vfs.TypeReg, Nlink: 2}
	for i, want := range []struct {
		id    uint64
		again bool
	}{{1, false}, {2, false}, {1, true}, {3, false}, {3, false}, {2, true}, {1, true}} {
		a.FileID = want.id
		if l.Again(&a) != want.again {
			t.Errorf("step %d: want %v", i, want.again)
		}
	}
	a.FSID[1] = 1
	a.FileID = 1
	if l.Again(&a) || l.Names() != 3 || l.Over() != 3 {
		t.Errorf("%d further names, %d beyond the bound", l.Names(), l.Over())
	}
	for _, one := range []vfs.Attr{{Valid: vfs.MaskV3, Type: vfs.TypeReg, Nlink: 1}, {Valid: vfs.MaskV3, Type: vfs.TypeDir, Nlink: 5}} {
		for range 2 {
			if l.Again(&one) {
				t.Errorf("%v with %d links is met again", one.Type, one.Nlink)
			}
		}
	}
}
