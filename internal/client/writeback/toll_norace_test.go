//go:build !race

// The race detector has pools forget things at random.

package writeback

import (
	"testing"
	"time"
)

// TestAheadAllocs: reading ahead allocates nothing but what the READ below does.
func TestAheadAllocs(t *testing.T) {
	const step = 64 << 10
	r, below, f := tolled(t, toll{delay: time.Hour})
	base, got := seqAllocs(t, below, step), seqAllocs(t, f, step)
	s := r.fs.Stats()
	t.Logf("%v allocations a read, %v without the wrapper, %d hits", got, base, s.ReadAheadHits)
	if got > base || s.ReadAheadHits < s.ReadAheadMisses {
		t.Errorf("%v allocations a read, %v without the wrapper; %+v", got, base, s)
	}
	r.ok(f.Close(t.Context()))
}

// TestNearAllocs: nor does a read of a near file.
func TestNearAllocs(t *testing.T) {
	f, p, ctx := idleFile(t, true), make([]byte, 4<<10), t.Context()
	got := testing.AllocsPerRun(1000, func() {
		if _, _, err := f.ReadAt(ctx, p, 0, nil); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("%v allocations a read", got)
	}
}
