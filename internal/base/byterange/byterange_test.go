package byterange

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestOf(t *testing.T) {
	for _, tc := range []struct {
		off, n uint64
		want   Span
		ok     bool
	}{
		{0, 0, Span{First: 0, Last: Max}, true},
		{5, 1, Span{First: 5, Last: 5}, true},
		{Max, 0, Span{First: Max, Last: Max}, true},
		{Max, 1, Span{First: Max, Last: Max}, true},
		{Max, 2, Span{}, false},
		{1, Max, Span{First: 1, Last: Max}, true},
		{2, Max, Span{}, false},
		{Max + 1, 0, Span{}, false},
		{0, math.MaxUint64, Span{}, false},
		{math.MaxUint64, math.MaxUint64, Span{}, false},
	} {
		got, ok := Of(tc.off, tc.n, false)
		if got != tc.want || ok != tc.ok {
			t.Errorf("%d bytes from %d: %+v, %t; want %+v, %t", tc.n, tc.off, got, ok, tc.want, tc.ok)
		}
	}
	if s := (Span{First: 3, Last: 7}); s.Len() != 5 {
		t.Errorf("%+v has %d bytes", s, s.Len())
	}
	if s := (Span{First: 3, Last: Max}); s.Len() != 0 {
		t.Errorf("%+v has %d bytes, want 0 for all that follow", s, s.Len())
	}
}

func TestSet(t *testing.T) {
	sh := func(a, b uint64) Span { return Span{a, b, false} }
	ex := func(a, b uint64) Span { return Span{a, b, true} }
	for name, tc := range map[string]struct{ have, want Set }{
		"merge":             {Set{}.Put(sh(0, 4)).Put(sh(10, 14)).Put(sh(5, 9)), Set{sh(0, 14)}},
		"kinds stay apart":  {Set{}.Put(sh(0, 4)).Put(ex(5, 9)), Set{sh(0, 4), ex(5, 9)}},
		"upgrade in middle": {Set{}.Put(sh(0, 9)).Put(ex(3, 5)), Set{sh(0, 2), ex(3, 5), sh(6, 9)}},
		"downgrade":         {Set{}.Put(ex(0, 9)).Put(sh(0, 9)), Set{sh(0, 9)}},
		"split":             {Set{}.Put(ex(0, 9)).Take(ex(3, 5)), Set{ex(0, 2), ex(6, 9)}},
		"take over several": {Set{}.Put(sh(0, 2)).Put(sh(4, 6)).Put(ex(8, 9)).Take(sh(1, 8)), Set{sh(0, 0), ex(9, 9)}},
		"take nothing":      {Set{}.Put(sh(4, 6)).Take(sh(0, 3)), Set{sh(4, 6)}},
		"take all":          {Set{}.Put(sh(4, Max)).Put(ex(0, 0)).Take(sh(0, Max)), Set{}},
		"up to the end":     {Set{}.Put(sh(0, Max-1)).Put(sh(Max, Max)), Set{sh(0, Max)}},
	} {
		if !slices.Equal(tc.have, tc.want) {
			t.Errorf("%s: %v, want %v", name, tc.have, tc.want)
		}
	}
	have := Set{sh(0, 4), ex(6, 9)}
	if s, ok := have.Conflict(sh(0, 6)); !ok || s != ex(6, 9) {
		t.Errorf("a shared lock meets %v, %t", s, ok)
	}
	if s, ok := have.Conflict(ex(4, 6)); !ok || s != sh(0, 4) {
		t.Errorf("an exclusive lock meets %v, %t", s, ok)
	}
	if s, ok := have.Conflict(ex(5, 5)); ok {
		t.Errorf("a lock in the gap meets %v", s)
	}
}

// TestAgainstBytes compares a set with an array that has the kind of each byte.
func TestAgainstBytes(t *testing.T) {
	const size = 24
	rnd := rand.New(rand.NewPCG(1, 2))
	var set Set
	var model [size]byte
	for step := range 20_000 {
		first := rnd.Uint64N(size)
		s := Span{First: first, Last: first + rnd.Uint64N(size-first)}
		kind := byte(rnd.IntN(3))
		s.Exclusive = kind == 2
		if kind == 0 {
			set = set.Take(s)
		} else {
			set = set.Put(s)
		}
		for i := s.First; i <= s.Last; i++ {
			model[i] = kind
		}
		if want := spans(model[:]); !slices.Equal(set, want) {
			t.Fatalf("step %d: %v, want %v", step, set, want)
		}
	}
}

func spans(kinds []byte) (all Set) {
	for i := 0; i < len(kinds); {
		j := i
		for j < len(kinds) && kinds[j] == kinds[i] {
			j++
		}
		if kinds[i] != 0 {
			all = append(all, Span{uint64(i), uint64(j - 1), kinds[i] == 2})
		}
		i = j
	}
	return all
}
