package upkeep

import (
	"bytes"
	"slices"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// round is a sorted set of what is needed, a range of all: what does not fit is left to a later round, for which all snapshots are gone
// through again. So memory is bounded by most, whatever the store has.
type round[T any] struct {
	most     int // items
	from, to *T  // items before from were in earlier rounds, those from to on are for later ones; nil: there is no end
	items    []T
	order    func(a, b *T) int      // first by sum; 0 for those alone that merge makes one
	merge    func(into, of *T) bool // makes one of two neighbours, if they are one
}

// add adds an item, if it belongs to this round.
func (r *round[T]) add(item T) {
	if r.from != nil && r.order(&item, r.from) < 0 || r.to != nil && r.order(&item, r.to) >= 0 {
		return
	}
	r.items = append(r.items, item)
	if len(r.items) < r.most {
		return
	}
	r.sort()
	if n := len(r.items); n > r.most/4*3 {
		to := r.items[n/2]
		r.items, r.to = r.items[:n/2], &to
	}
}

// sort puts the items in order, and makes one of those that are one.
func (r *round[T]) sort() {
	slices.SortFunc(r.items, func(a, b T) int { return r.order(&a, &b) })
	n := 0
	for i := range r.items {
		if n > 0 && r.merge(&r.items[n-1], &r.items[i]) {
			continue
		}
		r.items[n] = r.items[i]
		n++
	}
	r.items = r.items[:n]
}

// next begins the next round; false if there is none.
func (r *round[T]) next() bool {
	if r.to == nil {
		return false
	}
	r.from, r.to, r.items = r.to, nil, r.items[:0]
	return true
}

// need is an object that snapshots need: 40 bytes.
type need struct {
	sum  object.Sum
	size int64 // of the object; below 0: it is at least -1-size long
}

// roundObjects bounds the needs of a round: 40 MiB.
const roundObjects = 1 << 20

func newNeeds(most int) *round[need] {
	return &round[need]{
		most:  most,
		order: func(a, b *need) int { return bytes.Compare(a.sum[:], b.sum[:]) },
		merge: func(into, of *need) bool {
			if into.sum != of.sum {
				return false
			}
			switch {
			case into.size < 0 && of.size < 0: // the longer of the two
				into.size = min(into.size, of.size)
			case into.size < 0:
				into.size = of.size
			}
			return true
		},
	}
}
