package scan

import (
	"cmp"
	"slices"
	"strings"
)

// item is a path in a list of the largest.
type item struct {
	value int64 // what the list is about
	cell  Cell
	path  string
}

// top keeps the items with the largest values. Its least is first: a binary heap.
type top struct {
	max   int
	items []item
}

// wants reports whether an item with this value would be kept, so that its path is worth making.
func (t *top) wants(value int64) bool {
	return len(t.items) < t.max || len(t.items) > 0 && value > t.items[0].value
}

// add adds an item that it wants.
func (t *top) add(x item) {
	if len(t.items) < t.max {
		t.items = append(t.items, x)
		for i := len(t.items) - 1; i > 0 && t.items[i].value < t.items[(i-1)/2].value; i = (i - 1) / 2 {
			t.items[i], t.items[(i-1)/2] = t.items[(i-1)/2], t.items[i]
		}
		return
	}
	t.items[0] = x
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(t.items); child++ {
			if t.items[child].value < t.items[least].value {
				least = child
			}
		}
		if least == i {
			return
		}
		t.items[i], t.items[least] = t.items[least], t.items[i]
		i = least
	}
}

func (t *top) merge(other *top) {
	for _, x := range other.items {
		if t.wants(x.value) {
			t.add(x)
		}
	}
}

// sorted are the items, the largest first.
func (t *top) sorted() []item {
	all := slices.Clone(t.items)
	slices.SortFunc(all, func(a, b item) int {
		return cmp.Or(cmp.Compare(b.value, a.value), strings.Compare(a.path, b.path))
	})
	return all
}
