//go:build !race

// The race detector has pools forget things at random.

package readahead

import (
	"testing"
	"time"
)

// TestAheadAllocs: reading ahead allocates nothing but what the READ below does.
func TestAheadAllocs(t *testing.T) {
	const step = 64 << 10
	r, below, f := withCost(t, readCost{delay: time.Hour})
	base, got := seqAllocs(t, below, step), seqAllocs(t, f, step)
	s := r.ahead.Stats()
	t.Logf("%v allocations a read, %v without the wrapper, %d hits", got, base, s.Hits)
	if got > base || s.Hits < s.Misses {
		t.Errorf("%v allocations a read, %v without the wrapper; %+v", got, base, s)
	}
	r.ok(f.Close(t.Context()))
}
