// Package byterange is the arithmetic of locks on ranges of bytes, as in fcntl(2): locking a
// range again changes its kind, unlocking the middle leaves two ranges, and adjacent ranges of
// a kind become one.
//
// A [Set] is one owner's. Other owners, files and waiting are up to the code that keeps the sets.
package byterange

import (
	"math"
	"slices"
)

// Max is the last byte that can be locked: offsets of files are signed.
const Max = math.MaxInt64

// Span is the bytes from First to Last, inclusive.
type Span struct {
	First, Last uint64
	Exclusive   bool
}

// Of is the span of n bytes from off; an n of 0 means all that follow. ok is false if it
// reaches beyond Max.
func Of(off, n uint64, exclusive bool) (s Span, ok bool) {
	switch {
	case off > Max:
		return s, false
	case n == 0:
		return Span{off, Max, exclusive}, true
	case n-1 > Max-off:
		return s, false
	}
	return Span{off, off + n - 1, exclusive}, true
}

// Len is the number of bytes in s, or 0 if it reaches to Max: the inverse of Of.
func (s Span) Len() uint64 {
	if s.Last == Max {
		return 0
	}
	return s.Last - s.First + 1
}

// Overlaps reports whether s and o have a byte in common.
func (s Span) Overlaps(o Span) bool { return s.First <= o.Last && o.First <= s.Last }

// Conflicts reports whether two owners cannot hold s and o at the same time.
func (s Span) Conflicts(o Span) bool { return s.Overlaps(o) && (s.Exclusive || o.Exclusive) }

// Set is the locks of one owner: in order, without overlaps, and with no adjacent spans of one
// kind. The zero Set is empty.
type Set []Span

// Put locks s, and replaces earlier locks in that range.
func (t Set) Put(s Span) Set {
	t = t.Take(s)
	i := slices.IndexFunc(t, func(o Span) bool { return o.First > s.Last })
	if i < 0 {
		i = len(t)
	}
	from, to := i, i
	if i > 0 && t[i-1].Exclusive == s.Exclusive && t[i-1].Last+1 == s.First {
		from--
		s.First = t[from].First
	}
	if i < len(t) && t[i].Exclusive == s.Exclusive && s.Last+1 == t[i].First {
		s.Last = t[i].Last
		to++
	}
	return slices.Replace(t, from, to, s)
}

// Take unlocks s, whatever the kind.
func (t Set) Take(s Span) Set {
	from := slices.IndexFunc(t, s.Overlaps)
	if from < 0 {
		return t
	}
	to := from
	for to < len(t) && t[to].Overlaps(s) {
		to++
	}
	var left [2]Span
	n := 0
	if o := t[from]; o.First < s.First {
		left[n] = Span{o.First, s.First - 1, o.Exclusive}
		n++
	}
	if o := t[to-1]; o.Last > s.Last {
		left[n] = Span{s.Last + 1, o.Last, o.Exclusive}
		n++
	}
	return slices.Replace(t, from, to, left[:n]...)
}

// Conflict returns the first span of t that conflicts with another owner's s.
func (t Set) Conflict(s Span) (Span, bool) {
	i := slices.IndexFunc(t, s.Conflicts)
	if i < 0 {
		return Span{}, false
	}
	return t[i], true
}
