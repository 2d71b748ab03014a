package delta

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestJoin joins directories with memory for all, for some and for few of their entries.
func TestJoin(t *testing.T) {
	for _, held := range []int{heldBytes, 200_000, 0} {
		for _, n := range []int{0, 1, 40, 1000, 3000} {
			both, only, extra := numbered(0, n), numbered(n, n+n/3), numbered(2*n, 2*n+n/2)
			left := &dirOf{names: shuffled(slices.Concat(both, only), 1)}
			right := &dirOf{names: shuffled(slices.Concat(extra, both), 2)}
			l := join(t, left, right, held)
			what := fmt.Sprintf("%d names in %d bytes", n, held)
			l.is(t, what, both, only, extra)
			if !same(left.lookups, extra) || len(right.lookups) != 0 {
				t.Errorf("%s: %d and %d names were looked up", what, len(left.lookups), len(right.lookups))
			}
			if len(l.faults)+len(l.rights)+len(l.incomplete) > 0 {
				t.Errorf("%s: %v, %v, %v", what, l.faults, l.rights, l.incomplete)
			}
			if held == heldBytes && (left.listings != 1 || right.listings != 1) {
				t.Errorf("%s: %d and %d listings", what, left.listings, right.listings)
			}
			if left.listings != right.listings {
				t.Errorf("%s: %d listings of one side, %d of the other", what, left.listings, right.listings)
			}
		}
	}
}

// TestLeftListingFails: while the left listing is not known to its end, nothing is on the right
// only.
func TestLeftListingFails(t *testing.T) {
	names := numbered(0, 100)
	for at := 1; at <= 101; at += 10 {
		l := join(t, &dirOf{names: names, before: func(_, i int) error {
			if i == at {
				return vfs.ErrIO
			}
			return nil
		}}, &dirOf{names: shuffled(numbered(0, 120), 1)}, heldBytes)
		l.is(t, fmt.Sprint("at ", at), names[:at-1], nil, nil)
		if len(l.faults) != 1 || !errors.Is(l.faults[0], vfs.ErrIO) || !errors.Is(l.incomplete[0], vfs.ErrIO) {
			t.Errorf("at %d: %v, %v", at, l.faults, l.incomplete)
		}
	}
}

// TestRightListingFails: while the right listing is not known to its end, nothing is on one side
// only.
func TestRightListingFails(t *testing.T) {
	for at := 1; at <= 101; at += 10 {
		l := join(t, &dirOf{names: numbered(0, 120)}, &dirOf{names: numbered(0, 100), before: func(_, i int) error {
			if i == at {
				return vfs.ErrIO
			}
			return nil
		}}, heldBytes)
		l.is(t, fmt.Sprint("at ", at), nil, nil, nil)
		if len(l.rights) != 1 || !errors.Is(l.rights[0], vfs.ErrIO) || !errors.Is(l.incomplete[0], vfs.ErrIO) || len(l.faults) > 0 {
			t.Errorf("at %d: %v, %v, %v", at, l.rights, l.incomplete, l.faults)
		}
	}
}

// TestLaterPassFails: what was claimed before a fault is true, and nothing is claimed after it.
func TestLaterPassFails(t *testing.T) {
	const n = 2000
	both, only, extra := numbered(0, n), numbered(n, n+500), numbered(n+500, n+1000)
	for _, side := range []string{"left", "right"} {
		left, right := &dirOf{names: slices.Concat(both, only)}, &dirOf{names: slices.Concat(both, extra)}
		fails := func(pass, i int) error {
			if pass == 3 && i == n/2 {
				return vfs.ErrIO
			}
			return nil
		}
		if side == "left" {
			left.before = fails
		} else {
			right.before = fails
		}
		l := join(t, left, right, 100_000)
		for _, of := range []struct{ some, all []string }{{l.pairs, both}, {l.left, only}, {l.extra, extra}} {
			if len(of.some) == 0 || len(of.some) >= len(of.all) || len(slices.Compact(slices.Sorted(slices.Values(of.some)))) != len(of.some) {
				t.Errorf("%s: %d claims, of %d", side, len(of.some), len(of.all))
			}
			for _, name := range of.some {
				if !slices.Contains(of.all, name) {
					t.Errorf("%s: %s is claimed", side, name)
				}
			}
		}
		if len(l.faults)+len(l.rights) != 1 || right.listings != 3 {
			t.Errorf("%s: %v, %v, %d and %d listings", side, l.faults, l.rights, left.listings, right.listings)
		}
	}
}

// TestBadCookie: a listing that broke off begins again, on either side, and nothing is claimed
// twice, or falsely.
func TestBadCookie(t *testing.T) {
	const n = 1500
	both, only, extra := numbered(0, n), numbered(n, n+20), numbered(n+20, n+40)
	for _, held := range []int{heldBytes, 100_000} {
		for _, side := range []string{"left", "right"} {
			for times := 1; times <= maxRestarts+1; times++ {
				left, right := &dirOf{names: slices.Concat(both, only)}, &dirOf{names: slices.Concat(both, extra)}
				refused := 0
				fails := func(_, i int) error {
					if i == n/2 && refused < times {
						refused++
						return vfs.ErrBadCookie
					}
					return nil
				}
				if side == "left" {
					left.before = fails
				} else {
					right.before = fails
				}
				l := join(t, left, right, held)
				what := fmt.Sprintf("%s, %d times, %d bytes", side, times, held)
				if times <= maxRestarts {
					l.is(t, what, both, only, extra)
				} else if len(l.extra) > 0 || len(l.faults)+len(l.rights) != 1 {
					t.Errorf("%s: %d extra, %v, %v", what, len(l.extra), l.faults, l.rights)
				}
			}
		}
	}
}

// TestBadNames: what vfs.CheckName refuses is a fault, once, and no claim.
func TestBadNames(t *testing.T) {
	good := numbered(0, 500)
	bad := []string{"", ".", "..", "a/b", "nul\x00", strings.Repeat("x", 256), strings.Repeat("y", 1<<20)}
	for _, held := range []int{heldBytes, 0} {
		left := &dirOf{names: slices.Concat(bad, good)}
		l := join(t, left, &dirOf{names: good}, held)
		l.is(t, "on the left", good, nil, nil)
		if len(l.faults) != len(bad) {
			t.Errorf("%d bytes: on the left: %v", held, l.faults)
		}
		left = &dirOf{names: good}
		l = join(t, left, &dirOf{names: slices.Concat(good, bad)}, held)
		l.is(t, "on the right", good, nil, nil)
		if len(l.rights) != len(bad) || len(left.lookups) > 0 {
			t.Errorf("%d bytes: on the right: %v, looked up %q", held, l.rights, left.lookups)
		}
		l = join(t, &dirOf{names: slices.Concat(bad, good)}, &dirOf{names: slices.Concat(good, bad)}, held)
		l.is(t, "on both", good, nil, nil)
	}
}

// TestNameTwice: a name that one side lists twice is never on the right only.
func TestNameTwice(t *testing.T) {
	names := numbered(0, 800)
	for _, held := range []int{heldBytes, 0} {
		l := join(t, &dirOf{names: names}, &dirOf{names: slices.Concat(names, names)}, held)
		l.is(t, "on the right", names, nil, nil)
		l = join(t, &dirOf{names: slices.Concat(names, names)}, &dirOf{names: names}, held)
		l.is(t, "on the left", names, names, nil) // who tells of it looks it up first
		for _, side := range []string{"left", "right"} {
			var left, right vfs.FS = &dirOf{names: names}, &forEver{dirOf{names: names}}
			if side == "left" {
				left, right = right, left
			}
			l = join(t, left, right, held)
			if len(l.extra) > 0 || len(l.faults)+len(l.rights) != 1 || !errors.Is(errors.Join(slices.Concat(l.faults, l.rights)...), walk.ErrStuck) {
				t.Errorf("for ever on the %s: %d extra, %v, %v", side, len(l.extra), l.faults, l.rights)
			}
		}
	}
}

// forEver lists its names again and again.
type forEver struct{ dirOf }

func (f *forEver) ReadDir(_ context.Context, _ vfs.Handle, from vfs.Pos, _ vfs.Mask, _ uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		for i := from.Cookie; i < 1_000_000; i++ { // some bound must be at work before
			e := vfs.Entry{Name: []byte(f.names[i%uint64(len(f.names))]), Handle: handle(9), Attr: attrs(9, vfs.TypeReg), Next: vfs.Pos{Cookie: i + 1}}
			if !yield(&e, nil) {
				return
			}
		}
	}
}

// TestComesAndGoes: names that are made and removed between the passes. Those that stay are pairs,
// once, and nothing that is on both sides all the time is claimed to be on one.
func TestComesAndGoes(t *testing.T) {
	stay := numbered(0, 2000)
	for _, held := range []int{200_000, 100_000, 0} {
		live := func(seed int) *dirOf {
			f := &dirOf{}
			f.before = func(n, i int) error {
				if i == 1 { // each listing has other names beside, and another order
					f.names = shuffled(slices.Concat(stay, numbered(10_000*(n+seed), 10_000*(n+seed)+300)), uint64(n+seed))
				}
				return nil
			}
			return f
		}
		l := join(t, live(1), live(100), held)
		if !same(l.pairs, stay) {
			t.Errorf("%d bytes: %d pairs, want %d", held, len(l.pairs), len(stay))
		}
		for _, name := range slices.Concat(l.left, l.extra) {
			if slices.Contains(stay, name) {
				t.Errorf("%d bytes: %s is on one side only", held, name)
			}
		}
	}
}

// TestExtraIsLookedUp: what the left side's listing left out, and a LOOKUP finds, is no extra.
func TestExtraIsLookedUp(t *testing.T) {
	names := numbered(0, 100)
	left := &dirOf{names: names[:60], found: func(name string) error {
		if slices.Contains(names[:80], name) {
			return nil
		}
		return vfs.ErrNoEnt
	}}
	join(t, left, &dirOf{names: names}, heldBytes).is(t, "", names[:60], nil, names[80:])
	for _, err := range []error{vfs.ErrIO, vfs.ErrStale} {
		left := &dirOf{names: names[:60], found: func(string) error { return err }}
		l := join(t, left, &dirOf{names: names}, heldBytes)
		l.is(t, err.Error(), names[:60], nil, nil)
		if len(l.faults) != 1 || !errors.Is(l.faults[0], err) || l.names[0] != "" {
			t.Errorf("%v: %v of %q", err, l.faults, l.names)
		}
	}
}

// TestShowsNothing: entries without handles and attributes are joined by their names.
func TestShowsNothing(t *testing.T) {
	names := numbered(0, 100)
	right := &dirOf{names: names, bare: true}
	join(t, &dirOf{names: names}, right, heldBytes).is(t, "on the right", names, nil, nil)
	if len(right.lookups) > 0 {
		t.Errorf("%d names were looked up", len(right.lookups))
	}
}

// TestLocal: a local file system looks at each object that it lists. In a directory of several passes
// it does so at most twice for an entry.
func TestLocal(t *testing.T) {
	const n = 3000
	both, only, extra := numbered(0, n), numbered(n, n+200), numbered(n+200, n+400)
	there := slices.Concat(both, only)
	left := &dirOf{names: there, found: func(name string) error {
		if slices.Contains(there, name) {
			return nil
		}
		return vfs.ErrNoEnt
	}}
	right := &dirOf{names: shuffled(slices.Concat(both, extra), 1)}
	l := join(t, local{left}, local{right}, 100_000)
	l.is(t, "", both, only, extra)
	if left.listings < 3 || left.shown != len(there) || len(left.lookups) > len(there)+len(extra) {
		t.Errorf("left: %d listings, %d entries were looked at, and %d looked up", left.listings, left.shown, len(left.lookups))
	}
	if right.listings < 3 || right.shown > n/3 || len(right.lookups) > 0 {
		t.Errorf("right: %d listings, %d entries were looked at, and %d looked up", right.listings, right.shown, len(right.lookups))
	}
}

// build makes directories (names that end in '/') and files.
func build(t testing.TB, f vfs.FS, paths ...string) vfs.Handle {
	t.Helper()
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]vfs.Handle{"": root}
	for _, path := range paths {
		typ := vfs.TypeReg
		if strings.HasSuffix(path, "/") {
			typ, path = vfs.TypeDir, path[:len(path)-1]
		}
		dir, name := "", path
		if i := strings.LastIndexByte(path, '/'); i >= 0 {
			dir, name = path[:i], path[i+1:]
		}
		h, _, _, err := f.Create(t.Context(), known[dir], name, &vfs.CreateHow{Type: typ})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		known[path] = h
	}
	return root
}

// TestTree joins trees with directories of many directories, whose listings are suspended, with
// memory for all and for few. All memory is given back.
func TestTree(t *testing.T) {
	var both, only, extra, pairs []string
	for i := range 900 {
		dir := fmt.Sprintf("d%d", i)
		both, pairs = append(both, dir+"/", dir+"/f"), append(pairs, dir, dir+"/f")
		if i%3 == 0 {
			only = append(only, dir+"/left")
		}
		if i%5 == 0 {
			extra = append(extra, dir+"/right")
		}
	}
	for i := range 2000 {
		f := fmt.Sprintf("d7/many%d", i)
		both, pairs = append(both, f), append(pairs, f)
	}
	left, right := memfs.New(memfs.Options{}), memfs.New(memfs.Options{})
	a := build(t, left, slices.Concat(both, only, []string{"new/", "new/f", "dir/", "dir/f", "file"})...)
	b := build(t, right, slices.Concat(both, extra, []string{"old/", "old/f", "dir", "file/", "file/f"})...)
	for _, held := range []int{heldBytes, 0} {
		for _, parallel := range []int{1, 16} {
			l := &log{right: b}
			l.join(t, left, a, right, Options{Walk: walk.Options{Parallel: parallel}}, held)
			l.is(t, fmt.Sprint(held, " bytes"), slices.Concat(pairs, []string{"dir", "file"}),
				slices.Concat(only, []string{"new", "new/f"}), append(slices.Clone(extra), "old"))
			if len(l.faults)+len(l.rights)+len(l.incomplete) > 0 {
				t.Errorf("%v, %v, %v", l.faults, l.rights, l.incomplete)
			}
		}
	}
}

// TestLeftDirectoryIsRemoved: a left directory that is removed with all that is in it, while it is
// joined, makes nothing an extra.
func TestLeftDirectoryIsRemoved(t *testing.T) {
	for _, successor := range []bool{false, true} {
		left, right := memfs.New(memfs.Options{}), memfs.New(memfs.Options{})
		names := []string{"d/", "d/a", "d/b", "d/c"}
		a, b := build(t, left, names[:2]...), build(t, right, names...)
		l := &log{right: b, onEntry: func(d *Dir, _ *vfs.Entry) {
			for _, at := range []struct {
				dir  vfs.Handle
				name string
			}{{d.Handle, "a"}, {a, "d"}} {
				if _, err := left.Remove(t.Context(), at.dir, at.name, at.name == "d"); err != nil {
					t.Error(err)
				}
			}
			if successor {
				build(t, left, "d/")
			}
		}}
		if err := Tree(t.Context(), &dead{left}, a, right, Options{}, l); err != nil {
			t.Fatal(err)
		}
		l.is(t, fmt.Sprint("successor: ", successor), []string{"d", "d/a"}, nil, nil)
		if len(l.faults) != 1 || l.names[0] != "" || errors.Is(l.faults[0], walk.ErrVanished) == successor {
			t.Errorf("successor: %v: %v", successor, l.faults)
		}
	}
}

// dead shows a removed directory as an empty one, as Linux does to who has it open.
type dead struct{ vfs.FS }

func (f *dead) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, n uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		for e, err := range f.FS.ReadDir(ctx, dir, from, want, n) {
			if errors.Is(err, vfs.ErrStale) || !yield(e, err) {
				return
			}
		}
	}
}

func (f *dead) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, a, d vfs.Attr, err error) {
	if h, a, d, err = f.FS.Lookup(ctx, dir, name); errors.Is(err, vfs.ErrStale) {
		err = vfs.ErrNoEnt
	}
	return h, a, d, err
}
