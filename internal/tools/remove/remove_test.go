package remove

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// fixture is a file system, to build and to look at, and what a Remover has told of it.
type fixture struct {
	t    *testing.T
	fs   vfs.FS
	root vfs.Handle

	mu      sync.Mutex
	removed []string
	failed  map[string]error
	keep    []string // what may not be removed
}

func newFixture(t *testing.T, f vfs.FS) *fixture {
	t.Helper()
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t: t, fs: f, root: root, failed: make(map[string]error)}
}

// make makes an object, with the directories above it.
func (x *fixture) make(path string, how vfs.CreateHow) vfs.Handle {
	x.t.Helper()
	dir := x.root
	up, name, deep := cutLast(path)
	if deep {
		if r, err := vfs.Resolve(context.Background(), x.fs, x.root, up, false); err == nil {
			dir = r.Handle
		} else {
			dir = x.make(up, vfs.CreateHow{Type: vfs.TypeDir})
		}
	}
	h, _, _, err := x.fs.Create(context.Background(), dir, name, &how)
	if err != nil {
		x.t.Fatalf("make %s: %v", path, err)
	}
	return h
}

func cutLast(path string) (up, name string, deep bool) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:], i >= 0
}

func (x *fixture) file(path string) { x.t.Helper(); x.make(path, vfs.CreateHow{Type: vfs.TypeReg}) }

// left lists the paths below the root.
func (x *fixture) left() []string {
	x.t.Helper()
	all := []string{}
	var list func(dir vfs.Handle, at string)
	list = func(dir vfs.Handle, at string) {
		for e, err := range x.fs.ReadDir(context.Background(), dir, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
			if err != nil {
				x.t.Fatal(err)
			}
			all = append(all, at+string(e.Name))
			if e.Attr.Type == vfs.TypeDir {
				list(e.Handle, at+string(e.Name)+"/")
			}
		}
	}
	list(x.root, "")
	slices.Sort(all)
	return all
}

func (x *fixture) options() Options {
	return Options{
		Ask: func(path string, _ vfs.Type) (bool, error) { return !slices.Contains(x.keep, path), nil },
		Removed: func(path string, _ vfs.Type) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.removed = append(x.removed, path)
		},
		Failed: func(path string, err error) error {
			x.mu.Lock()
			defer x.mu.Unlock()
			if x.failed[path] != nil {
				x.t.Errorf("%s has failed twice: %v, %v", path, x.failed[path], err)
			}
			x.failed[path] = err
			return nil
		},
	}
}

// remove removes names of the root.
func (x *fixture) remove(names ...string) {
	x.t.Helper()
	r := New(x.t.Context(), x.fs, x.options())
	for _, name := range names {
		if err := r.Remove(Target{Dir: x.root, Name: name, Path: name}); err != nil {
			x.t.Fatal(err)
		}
	}
	if err := r.Wait(); err != nil {
		x.t.Fatal(err)
	}
}

func (x *fixture) expect(left []string, failed ...string) {
	x.t.Helper()
	if got := x.left(); !slices.Equal(got, left) {
		x.t.Errorf("left is %q, want %q", got, left)
	}
	if got := slices.Sorted(maps.Keys(x.failed)); !slices.Equal(got, failed) {
		x.t.Errorf("failed have %v, want %q", x.failed, failed)
	}
}

// TestRemove: names go with all that is below them, what is not named stays, and what links lead
// to stays.
func TestRemove(t *testing.T) {
	x := newFixture(t, memfs.New(memfs.Options{}))
	for _, path := range []string{"a/b/c/f", "a/b/g", "a/h", "f", "stays/f"} {
		x.file(path)
	}
	x.make("a/b/empty", vfs.CreateHow{Type: vfs.TypeDir})
	x.make("a/link", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "../stays"})
	x.make("l", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "stays"})
	x.make("a/pipe", vfs.CreateHow{Type: vfs.TypeFIFO})
	x.remove("a", "f", "l", "never there")
	x.expect([]string{"stays", "stays/f"})
	if len(x.removed) != 11 {
		t.Errorf("%d removed were told: %q", len(x.removed), x.removed)
	}
	if i, j := slices.Index(x.removed, "a/b/c/f"), slices.Index(x.removed, "a/b/c"); i < 0 || j < i {
		t.Errorf("the order is %q", x.removed)
	}
}

// TestRandomTrees: several trees at once, of any shape, are gone, by one REMOVE for each object
// and one listing for each directory.
func TestRandomTrees(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			var mu sync.Mutex
			calls := make(map[string]int)
			x := newFixture(t, memfs.New(memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
				mu.Lock()
				defer mu.Unlock()
				calls[op]++
				return nil
			}}))
			rnd := rand.New(rand.NewPCG(seed, 1))
			dirs, n, names := []string{}, 0, []string{}
			for i := range 8 {
				names = append(names, fmt.Sprintf("t%d", i))
				x.make(names[i], vfs.CreateHow{Type: vfs.TypeDir})
				dirs = append(dirs, names[i])
			}
			for range 400 {
				up := dirs[rnd.IntN(len(dirs))]
				if n++; rnd.IntN(4) == 0 {
					dirs = append(dirs, fmt.Sprintf("%s/d%d", up, n))
					x.make(dirs[len(dirs)-1], vfs.CreateHow{Type: vfs.TypeDir})
					continue
				}
				x.file(fmt.Sprintf("%s/f%d", up, n))
			}
			clear(calls)
			x.remove(names...)
			if calls["remove"] != n+len(names) || calls["lookup"] != len(names) || calls["getattr"] != len(names) {
				t.Errorf("%d objects in %d trees took %v", n, len(names), calls)
			}
			x.expect([]string{})
		})
	}
}

// TestEachFailureIsTold: what cannot be removed or listed is reported once, with its directories
// left and nothing told of them, and all else goes.
func TestEachFailureIsTold(t *testing.T) {
	var bad sync.Map
	x := newFixture(t, memfs.New(memfs.Options{Fault: func(_ context.Context, op string, h vfs.Handle) error {
		if want, ok := bad.Load(h); ok && want == op {
			return vfs.ErrAccess
		}
		return nil
	}}))
	for _, path := range []string{"a/x/f", "a/x/g", "a/y/f", "a/z/f", "b/keep", "b/f"} {
		x.file(path)
	}
	at := func(path string) vfs.Handle {
		r, err := vfs.Resolve(t.Context(), x.fs, x.root, path, false)
		if err != nil {
			t.Fatal(err)
		}
		return r.Handle
	}
	bad.Store(at("a/x"), "remove")
	bad.Store(at("a/y"), "readdir")
	x.keep = []string{"b/keep"}
	x.remove("a", "b")
	bad.Clear()
	x.expect([]string{"a", "a/x", "a/x/f", "a/x/g", "a/y", "a/y/f", "b", "b/keep"}, "a/x/f", "a/x/g", "a/y")
}

// counting is a file system whose positions count the entries from the beginning. It lists a few
// at a time.
type counting struct{ vfs.FS }

func (f counting) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, _ uint32) iter.Seq2[*vfs.Entry, error] {
	const page = 10
	return func(yield func(*vfs.Entry, error) bool) {
		for at := from.Cookie; ; {
			var found []vfs.Entry
			n := uint64(0)
			for e, err := range f.FS.ReadDir(ctx, dir, vfs.Pos{}, want, 0) {
				if err != nil {
					yield(nil, err)
					return
				}
				if n++; n > at && len(found) < page {
					one := *e
					one.Name, one.Next = bytes.Clone(e.Name), vfs.Pos{Cookie: n}
					found = append(found, one)
				}
			}
			for i := range found {
				if !yield(&found[i], nil) {
					return
				}
			}
			if at += uint64(len(found)); len(found) < page {
				return
			}
		}
	}
}

// TestPositionsMove: a directory is emptied although each removal moves the positions behind it.
func TestPositionsMove(t *testing.T) {
	x := newFixture(t, memfs.New(memfs.Options{}))
	for i := range 2000 {
		x.file(fmt.Sprint("a/", i))
	}
	x.fs = counting{x.fs}
	x.remove("a")
	x.expect([]string{})
}

// TestFilledMeanwhile: a directory that is filled once while it is removed is emptied again, one
// that is filled each time is reported.
func TestFilledMeanwhile(t *testing.T) {
	for _, c := range []struct {
		times int
		left  []string
	}{{1, nil}, {2, nil}, {10_000, []string{"a"}}} {
		var x *fixture
		var n int
		fill := func(ctx context.Context, op string, _ vfs.Handle) error {
			if op == "remove" && n < c.times {
				n++
				a, err := vfs.Resolve(ctx, x.fs, x.root, "a", false)
				if err != nil {
					return nil
				}
				m := n
				n = c.times // what follows is no removal of ours
				_, _, _, err = x.fs.Create(ctx, a.Handle, fmt.Sprintf("new%d", m), &vfs.CreateHow{Type: vfs.TypeReg})
				n = m
				return err
			}
			return nil
		}
		x = newFixture(t, memfs.New(memfs.Options{Fault: fill}))
		x.make("a", vfs.CreateHow{Type: vfs.TypeDir})
		x.remove("a")
		if len(c.left) == 0 {
			x.expect([]string{})
		} else if err := x.failed["a"]; !errors.Is(err, ErrFilled) {
			t.Errorf("failed have %v", x.failed)
		}
	}
}

// twoFS shows one directory, and what is in it, as another file system.
type twoFS struct {
	vfs.FS
	mount vfs.Handle
}

func (f *twoFS) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, n uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		for e, err := range f.FS.ReadDir(ctx, dir, from, want, n) {
			if err == nil && (e.Handle == f.mount || dir == f.mount) {
				e.Attr.FSID[1]++
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestOtherFileSystems: what is mounted below is left and told of, if that was asked for.
func TestOtherFileSystems(t *testing.T) {
	for _, asked := range []bool{false, true} {
		f := &twoFS{FS: memfs.New(memfs.Options{})}
		x := newFixture(t, f)
		x.file("a/f")
		x.file("a/mnt/f")
		r, err := vfs.Resolve(t.Context(), f, x.root, "a/mnt", false)
		if err != nil {
			t.Fatal(err)
		}
		f.mount = r.Handle
		target := Target{Dir: x.root, Name: "a", Path: "a"}
		if asked {
			_, attr, err := f.Root(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			target.Within = &attr.FSID
		}
		rm := New(t.Context(), f, x.options())
		if err := errors.Join(rm.Remove(target), rm.Wait()); err != nil {
			t.Fatal(err)
		}
		if !asked {
			x.expect([]string{})
			continue
		}
		x.expect([]string{"a", "a/mnt", "a/mnt/f"}, "a/mnt")
		if !errors.Is(x.failed["a/mnt"], ErrOtherFS) {
			t.Error(x.failed)
		}
	}
}

// TestErrorEndsTheWork: an error of Ask or of Failed ends all, and is what Wait returns.
func TestErrorEndsTheWork(t *testing.T) {
	enough := errors.New("enough")
	for _, ask := range []bool{false, true} {
		fail := func(_ context.Context, op string, _ vfs.Handle) error {
			if op == "remove" {
				return vfs.ErrIO
			}
			return nil
		}
		x := newFixture(t, memfs.New(memfs.Options{Fault: fail}))
		for i := range 500 {
			x.file(fmt.Sprintf("a/f%d", i))
		}
		o := x.options()
		if o.Parallel = 1; ask {
			o.Ask = func(string, vfs.Type) (bool, error) { return false, enough }
		} else {
			o.Failed = func(string, error) error { return enough }
		}
		r := New(t.Context(), x.fs, o)
		_ = r.Remove(Target{Dir: x.root, Name: "a", Path: "a"}) // Wait returns it
		if err := r.Wait(); !errors.Is(err, enough) {
			t.Errorf("the error is %v", err)
		}
		if err := r.Remove(Target{Dir: x.root, Name: "a"}); !errors.Is(err, enough) {
			t.Errorf("a further name: %v", err)
		}
		if n := len(x.left()); n != 501 {
			t.Errorf("%d are left", n)
		}
	}
}

// TestOpenedStays: a directory that was opened, and stays, has its mode again.
func TestOpenedStays(t *testing.T) {
	f := memfs.New(memfs.Options{UID: 1000, GID: 1000})
	x := newFixture(t, f.As(&vfs.Caller{UID: 1000, GID: 1000}))
	x.file("a/b/f")
	x.file("a/b/keep")
	at := func() (vfs.Handle, uint32) {
		r, err := vfs.Resolve(t.Context(), x.fs, x.root, "a/b", false)
		if err != nil {
			t.Fatal(err)
		}
		return r.Handle, r.Attr.Mode & 0o7777
	}
	h, _ := at()
	if _, err := x.fs.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o2555}, nil); err != nil {
		t.Fatal(err)
	}
	x.keep = []string{"a/b/keep"}
	o := x.options()
	o.Open = true
	r := New(t.Context(), x.fs, o)
	if err := r.Remove(Target{Dir: x.root, Name: "a", Path: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(); err != nil {
		t.Fatal(err)
	}
	x.expect([]string{"a", "a/b", "a/b/keep"})
	if _, mode := at(); mode != 0o2555 {
		t.Errorf("its mode is %o", mode)
	}
}

// TestDoneAndOpen: Done is called once for each name, whatever becomes of it, and directories that their
// owner may not write to are emptied if that was asked for.
func TestDoneAndOpen(t *testing.T) {
	f := memfs.New(memfs.Options{UID: 1000, GID: 1000})
	x := newFixture(t, f.As(&vfs.Caller{UID: 1000, GID: 1000}))
	x.file("a/b/f")
	x.file("f")
	for _, path := range []string{"a/b", "a"} {
		r, err := vfs.Resolve(t.Context(), x.fs, x.root, path, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.fs.SetAttr(t.Context(), r.Handle, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o555}, nil); err != nil {
			t.Fatal(err)
		}
	}
	x.remove("a")
	x.expect([]string{"a", "a/b", "a/b/f", "f"}, "a/b/f")
	clear(x.failed)
	o := x.options()
	o.Open = true
	r := New(t.Context(), x.fs, o)
	done := make(map[string]int)
	for _, name := range []string{"a", "f", "none", ".."} {
		if err := r.Remove(Target{Dir: x.root, Name: name, Path: name, Done: func() { x.mu.Lock(); done[name]++; x.mu.Unlock() }}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Wait(); err != nil {
		t.Fatal(err)
	}
	x.expect([]string{}, "..")
	if want := map[string]int{"a": 1, "f": 1, "none": 1, "..": 1}; !maps.Equal(done, want) {
		t.Errorf("done was called %v", done)
	}
}
