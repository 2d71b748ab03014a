package v3

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// nameOf is name i of a large directory.
func nameOf(i int) []byte { return binary.BigEndian.AppendUint64([]byte("n"), uint64(i)) }

// remembering is the memory of the names from..to-1.
func remembering(from, to int) *memory {
	m := new(memory)
	for i := from; i < to; i++ {
		m.add(m.hash(nameOf(i)))
	}
	return m
}

// sizes are numbers of names around all bounds of a memory.
var sizes = []int{
	minOrder, chunkNames, chunkNames + 1, maxRing, maxRing + 1, 2 * maxRing, maxExact, maxExact + 3*maxRing,
}

// TestReplay lists a directory again of which n names were delivered: these are
// left out, and those behind them delivered, though every seventh is gone, of
// very many most, and new ones stand everywhere.
func TestReplay(t *testing.T) {
	need.Speed(t, "one goroutine")
	for _, whole := range []bool{true, false} {
		for _, n := range sizes {
			from := 0
			if !whole {
				if n == maxExact {
					continue // which takes time, and is as one more
				}
				from = n / 3
			}
			m := remembering(from, n)
			r := m.replay(whole)
			if r == nil {
				if !whole && n-from < minOrder {
					continue
				}
				t.Fatalf("%d of %d names are too few", n-from, n)
			}
			delivered := make(map[int]bool)
			for i := range n + 100 {
				if gone := i%7 == 3 || i > maxRing && i < n-2*maxRing && i%64 != 0; gone && i < n {
					continue
				}
				known, err := r.known(m.hash(nameOf(i)))
				if err != nil {
					t.Fatalf("%d names, at %d: %v", n, i, err)
				}
				if !known {
					delivered[i] = true
				}
				if _, err := r.known(m.hash(nameOf(-1 - i))); err != nil {
					t.Fatalf("%d names, at a new name before %d: %v", n, i, err)
				}
			}
			if err := r.end(); err != nil {
				t.Fatalf("%d names: %v", n, err)
			}
			for i := range n + 100 {
				if delivered[i] != (i >= n) { // of what is gone, neither
					t.Fatalf("%d names, whole %v: name %d delivered: %v", n, whole, i, delivered[i])
				}
			}
		}
	}
}

// TestReplayShuffled lists it in another order. What is known by itself is left
// out all the same; else it is an error before anything is delivered.
func TestReplayShuffled(t *testing.T) {
	for _, n := range []int{100, maxRing + 1, maxExact + 1} {
		m := remembering(0, n)
		r := m.replay(true)
		delivered := 0
		var err error
		for _, i := range rand.New(rand.NewPCG(1, uint64(n))).Perm(n + 100) {
			var known bool
			if known, err = r.known(m.hash(nameOf(i))); err != nil {
				break
			}
			if known {
				continue
			}
			if delivered++; i < n {
				t.Fatalf("%d names: %d was delivered again", n, i)
			}
		}
		if n <= maxExact && (err != nil || delivered != 100) {
			t.Errorf("%d names: %d more delivered, %v", n, delivered, err)
		}
		if n > maxExact && (!errors.Is(err, vfs.ErrBadCookie) || delivered > 0) {
			t.Errorf("%d names: %d more delivered, %v", n, delivered, err)
		}
	}
}

// TestReplayLost lists it when none of the last names is there.
func TestReplayLost(t *testing.T) {
	const n = maxExact + maxRing
	m := remembering(0, n)
	r := m.replay(true)
	for i := range n + 1000 {
		if i >= n-maxRing && i < n {
			continue
		}
		if known, err := r.known(m.hash(nameOf(i))); !known || err != nil {
			t.Fatalf("name %d: %v, %v", i, known, err)
		}
	}
	if err := r.end(); !errors.Is(err, vfs.ErrBadCookie) {
		t.Errorf("%v", err)
	}
}

// TestReplayTooFew: a handful of names proves no order.
func TestReplayTooFew(t *testing.T) {
	if r := remembering(0, minOrder-1).replay(false); r != nil {
		t.Error("believed")
	}
	if r := remembering(0, 1).replay(true); r == nil {
		t.Error("not even one name is known")
	}
}

// TestMemoryBytes measures what is kept.
func TestMemoryBytes(t *testing.T) {
	for _, tc := range []struct {
		n    int
		most uint64
	}{{0, 1 << 10}, {1, 20 << 10}, {10_000, 100 << 10}, {maxExact, 9 << 20}, {4 * maxExact, 80 << 10}} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		m := remembering(0, tc.n)
		runtime.GC()
		runtime.ReadMemStats(&after)
		if kept := after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc); kept > tc.most+16<<10 {
			t.Errorf("%d names: %d bytes, want %d at most", tc.n, kept, tc.most)
		}
		runtime.KeepAlive(m)
	}
}
