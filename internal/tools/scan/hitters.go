package scan

import (
	"cmp"
	"slices"
)

// Cell is how many there are, and how many bytes they have.
type Cell struct{ Count, Bytes uint64 }

func (c *Cell) add(o Cell) {
	c.Count += o.Count
	c.Bytes += o.Bytes
}

// hitters counts by key, in bounded memory: what comes often is counted nearly right, what comes seldom may be lost
// among the others. Up to the bound all is exact.
type hitters[K comparable] struct {
	max   int
	cells map[K]*Cell
	last  K // most keys are that before
	at    *Cell
	lost  Cell   // of keys that were dropped
	short uint64 // what a key may have lost, at most
}

func newHitters[K comparable](most int) hitters[K] {
	return hitters[K]{max: most, cells: make(map[K]*Cell)}
}

// of is the cell of a key.
func (h *hitters[K]) of(key K) *Cell {
	if h.at != nil && key == h.last {
		return h.at
	}
	c := h.cells[key]
	if c == nil {
		c = h.enter(key)
	}
	h.last, h.at = key, c
	return c
}

func (h *hitters[K]) enter(key K) *Cell {
	if len(h.cells) >= h.max {
		h.drop()
	}
	c := new(Cell)
	h.cells[key] = c
	return c
}

// ofName is of for a name in a buffer, which is copied only if it is new.
func ofName(h *hitters[string], name []byte) *Cell {
	if h.at != nil && string(name) == h.last {
		return h.at
	}
	c := h.cells[string(name)]
	if c == nil {
		return h.of(string(name))
	}
	return c
}

// drop makes room: the rarer half of the keys goes.
func (h *hitters[K]) drop() {
	counts := make([]uint64, 0, len(h.cells))
	for _, c := range h.cells {
		counts = append(counts, c.Count)
	}
	slices.Sort(counts)
	most, left := counts[len(counts)/2], len(counts)/2+1
	for key, c := range h.cells {
		if c.Count <= most && left > 0 {
			left--
			h.lost.add(*c)
			delete(h.cells, key)
		}
	}
	h.short += most
	h.at = nil
}

// merge adds what other has counted.
func (h *hitters[K]) merge(other *hitters[K]) {
	for key, c := range other.cells {
		mine := h.cells[key]
		if mine == nil {
			mine = new(Cell)
			h.cells[key] = mine
		}
		mine.add(*c)
	}
	h.lost.add(other.lost)
	h.short += other.short
}

// keyed is a key with its cell.
type keyed[K cmp.Ordered] struct {
	key K
	Cell
}

// largest are the n keys with the most, and the rest.
func largest[K cmp.Ordered](h *hitters[K], n int) (rows []keyed[K], rest Cell) {
	for key, c := range h.cells {
		rows = append(rows, keyed[K]{key, *c})
	}
	slices.SortFunc(rows, func(a, b keyed[K]) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Count, a.Count), cmp.Compare(a.key, b.key))
	})
	rest = h.lost
	for ; len(rows) > n; rows = rows[:len(rows)-1] {
		rest.add(rows[len(rows)-1].Cell)
	}
	return rows, rest
}
