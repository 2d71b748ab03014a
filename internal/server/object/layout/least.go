package layout

import "slices"

// leastSlack is how many strings more than wanted a Least keeps before it drops what is too much.
const leastSlack = 256

// Least keeps the smallest of the values that it is shown, N at most.
type Least[T any] struct {
	N       int
	Compare func(a, b T) int
	All     []T  // after Cut: sorted
	Left    bool // there were others
}

// Add shows it a value.
func (l *Least[T]) Add(v T) {
	l.All = append(l.All, v)
	if len(l.All) >= 2*l.N+leastSlack {
		l.Cut()
	}
}

// Cut sorts, and drops what is too much.
func (l *Least[T]) Cut() {
	slices.SortFunc(l.All, l.Compare)
	if len(l.All) > l.N {
		clear(l.All[l.N:])
		l.All, l.Left = l.All[:l.N], true
	}
}
