package paths

import (
	"iter"
	"path/filepath"

	"github.com/nfsbox/nfsbox/internal/base/way"
)

// Tree is a directory that is served.
type Tree struct {
	Name    string // by which callers know it: the path of the export
	Dir     string // an absolute path without symbolic links
	At      Place  // where Dir leads
	Crosses bool   // file systems that are mounted below are served, too
}

// Nesting knows which trees show what.
type Nesting struct {
	mounts mounts
	ways   map[spot][]entry
	covers map[spot][]uint64 // mounts by which something else is seen there: it is mounted on it
}

// entry is a tree that begins at a spot, as one mount shows it.
type entry struct {
	by    *Tree
	mount uint64
}

// Nest reads the mounts of this host and says which of the trees show what. Without
// /proc it goes by paths and devices alone.
func Nest(all []Tree) *Nesting { return nest(all, mountsNow()) }

func nest(all []Tree, m mounts) *Nesting {
	n := &Nesting{mounts: m, ways: make(map[spot][]entry), covers: make(map[spot][]uint64)}
	for _, x := range m {
		if at, ok := m.spot(x.parent, x.point); ok && x.parent != x.id {
			n.covers[at] = append(n.covers[at], x.parent)
		}
	}
	for i := range all {
		by := &all[i]
		at := n.spot(by)
		n.ways[at] = append(n.ways[at], entry{by, by.At.mount})
		if !by.Crosses {
			continue
		}
		for _, x := range m {
			if _, ok := below(by.Dir, x.point); ok && x.id != by.At.mount {
				at := spot{x.volume, x.root}
				n.ways[at] = append(n.ways[at], entry{by, x.id})
			}
		}
	}
	return n
}

// spot is where a tree begins in its file system. Where that is unknown it is the path
// on this host.
func (n *Nesting) spot(t *Tree) spot {
	if at, ok := n.mounts.spot(t.At.mount, t.Dir); ok {
		return at
	}
	return spot{path: t.Dir}
}

// Above yields the other trees that show the directory of in, the nearest first.
func (n *Nesting) Above(in *Tree) iter.Seq[*Tree] {
	at := n.spot(in)
	return func(yield func(*Tree) bool) {
		for out := range n.over(at) {
			if out.Name == in.Name || at.volume == "" && out.hides(in) {
				continue
			}
			if !yield(out) {
				return
			}
		}
	}
}

// over yields the trees that show a spot, those of the nearest directories first.
func (n *Nesting) over(at spot) iter.Seq[*Tree] {
	return func(yield func(*Tree) bool) {
		blocked := make(map[uint64]bool) // mounts through which nothing below is seen
		for ; ; at.path = filepath.Dir(at.path) {
			for _, mount := range n.covers[at] {
				blocked[mount] = true
			}
			for _, w := range n.ways[at] {
				if !blocked[w.mount] && !yield(w.by) {
					return
				}
			}
			if filepath.Dir(at.path) == at.path {
				return
			}
		}
	}
}

// Reaching finds the trees that show a step of a way, by any mount. Where the mounts
// are unknown it finds none.
func (n *Nesting) Reaching(steps []way.Step) map[*Tree]bool {
	all := make(map[*Tree]bool)
	for i := range steps {
		at, ok := n.mounts.spot(mountOf(steps[i].Path), steps[i].Path)
		if !ok {
			continue
		}
		for by := range n.over(at) {
			all[by] = true
		}
	}
	return all
}

// hides reports whether in, a directory below t by its path, is of another mount that t
// does not serve. Where mounts have no numbers the device tells.
func (t *Tree) hides(in *Tree) bool {
	if t.At.mount == 0 {
		return !t.Crosses && t.At.dev != in.At.dev
	}
	return !t.Crosses && t.At.mount != in.At.mount
}
