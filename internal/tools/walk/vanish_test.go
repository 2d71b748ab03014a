package walk

import (
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// The objects of a tree in which things vanish: the root holds "a", that holds "b",
// and that holds "f" and "g". newB is another directory, which holds "new".
const (
	rootID = iota + 1
	dirA
	dirB
	fileF
	fileG
	newB
	fileNew
	newA
)

// live is such a tree. The handles in dead are stale, those in midway after their first
// entry was listed. names has the names that a LOOKUP finds.
type live struct {
	dead, midway []uint64
	names        map[string]vfs.Entry
	lookups      int
}

func (f *live) list(dir uint64, _ vfs.Pos) iter.Seq2[*vfs.Entry, error] {
	in := map[uint64][]*vfs.Entry{
		rootID: {entry("a", dirA, vfs.TypeDir, 1)}, dirA: {entry("b", dirB, vfs.TypeDir, 1)},
		dirB: {entry("f", fileF, vfs.TypeReg, 1), entry("g", fileG, vfs.TypeReg, 2)}, newB: {entry("new", fileNew, vfs.TypeReg, 1)},
	}
	return func(yield func(*vfs.Entry, error) bool) {
		if slices.Contains(f.dead, dir) {
			yield(nil, vfs.ErrStale)
			return
		}
		for _, e := range in[dir] {
			if !yield(e, nil) {
				return
			}
			if slices.Contains(f.midway, dir) {
				yield(nil, vfs.ErrStale)
				return
			}
		}
	}
}

func (f *live) lookup(dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, error) {
	f.lookups++
	if slices.Contains(f.dead, number(dir)) {
		return vfs.Handle{}, vfs.Attr{}, vfs.ErrStale
	}
	e, ok := f.names[name]
	if !ok {
		return vfs.Handle{}, vfs.Attr{}, vfs.ErrNoEnt
	}
	return e.Handle, e.Attr, nil
}

// TestVanished: directories go, or are replaced, while a tree is walked.
func TestVanished(t *testing.T) {
	named := func(name string, n uint64, typ vfs.Type) map[string]vfs.Entry {
		return map[string]vfs.Entry{name: *entry(name, n, typ, 1)}
	}
	unlinked := named("b", dirB, vfs.TypeDir)
	b := unlinked["b"]
	b.Attr.Nlink = 0
	unlinked["b"] = b
	tests := map[string]struct {
		tree       live
		fault      string // its path; none if empty
		vanished   bool
		entered    []string
		entries    []string
		lookups    int
		incomplete string // a directory that is
	}{
		"before it is listed": {
			tree: live{dead: []uint64{dirB}}, fault: "a/b", vanished: true, entered: []string{".", "a"}, lookups: 1,
		},
		"with its parent": {
			tree: live{dead: []uint64{dirA, dirB}}, fault: "a", vanished: true, entered: []string{"."}, lookups: 1,
		},
		"while it is listed": {
			tree: live{midway: []uint64{dirB}}, fault: "a/b", vanished: true, entered: []string{".", "a", "a/b"},
			entries: []string{"a/b/f"}, lookups: 1, incomplete: "a/b",
		},
		"replaced": {
			tree: live{dead: []uint64{dirB}, names: named("b", newB, vfs.TypeDir)}, entered: []string{".", "a", "a/b"},
			entries: []string{"a/b/new"}, lookups: 1,
		},
		"replaced by what vanished": {
			tree: live{dead: []uint64{dirB, newB}, names: named("b", newB, vfs.TypeDir)}, fault: "a/b",
			entered: []string{".", "a", "a/b"}, lookups: 2, incomplete: "a/b",
		},
		"replaced by an ancestor": {
			tree: live{dead: []uint64{dirB}, names: named("b", rootID, vfs.TypeDir)}, fault: "a/b",
			entered: []string{".", "a"}, lookups: 1, incomplete: "a",
		},
		"replaced by a file": {
			tree: live{dead: []uint64{dirB}, names: named("b", fileNew, vfs.TypeReg)}, fault: "a/b",
			entered: []string{".", "a", "a/b"}, lookups: 1, incomplete: "a/b",
		},
		"replaced while it is listed": {
			tree: live{midway: []uint64{dirB}, names: named("b", newB, vfs.TypeDir)}, fault: "a/b",
			entered: []string{".", "a", "a/b"}, entries: []string{"a/b/f"}, lookups: 1, incomplete: "a/b",
		},
		"its name is found for a moment": {
			tree: live{dead: []uint64{dirB}, names: unlinked}, fault: "a/b", vanished: true, entered: []string{".", "a"}, lookups: 1,
		},
		"dead and still there": {
			tree: live{dead: []uint64{dirB}, names: named("b", dirB, vfs.TypeDir)}, fault: "a/b",
			entered: []string{".", "a", "a/b"}, lookups: 1, incomplete: "a/b",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := invented(tt.tree.list)
			f.lookup = tt.tree.lookup
			l := newLog(t)
			if err := l.walk(f, Options{Parallel: 1}); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(l.entered, tt.entered) || !slices.Equal(l.entries, tt.entries) || tt.tree.lookups != tt.lookups {
				t.Errorf("entered %q, entries %q, %d lookups", l.entered, l.entries, tt.tree.lookups)
			}
			if !slices.Equal(sorted(l.left), sorted(l.entered)) {
				t.Errorf("entered %q and left %q", l.entered, l.left)
			}
			if tt.fault == "" {
				if len(l.faults) > 0 {
					t.Errorf("faults %v", l.faults)
				}
			} else if len(l.faults) != 1 || l.faults[0].path != tt.fault || errors.Is(l.faults[0].err, ErrVanished) != tt.vanished {
				t.Errorf("faults %v", l.faults)
			}
			if len(l.incomplete) > 1 || (l.incomplete[tt.incomplete] == nil) != (tt.incomplete == "") {
				t.Errorf("incomplete %v", l.incomplete)
			}
		})
	}
}

// TestVanishedAbove: the directory in which the name is looked up is dead, too.
func TestVanishedAbove(t *testing.T) {
	for name, tt := range map[string]struct {
		names    map[string]vfs.Entry
		vanished bool
	}{
		"gone":     {nil, true},
		"replaced": {map[string]vfs.Entry{"a": *entry("a", newA, vfs.TypeDir, 1)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tree := live{names: tt.names}
			f := invented(tree.list)
			f.lookup = tree.lookup
			l := newLog(t)
			inner := f.readDir
			f.readDir = func(dir vfs.Handle, from vfs.Pos) iter.Seq2[*vfs.Entry, error] {
				if number(dir) == dirB { // a has been listed by then
					tree.dead = []uint64{dirA, dirB}
				}
				return inner(dir, from)
			}
			if err := l.walk(f, Options{Parallel: 1}); err != nil {
				t.Fatal(err)
			}
			if len(l.faults) != 1 || l.faults[0].path != "a/b" || errors.Is(l.faults[0].err, ErrVanished) != tt.vanished {
				t.Errorf("faults %v", l.faults)
			}
			if tree.lookups != 2 {
				t.Errorf("%d lookups", tree.lookups)
			}
		})
	}
}
