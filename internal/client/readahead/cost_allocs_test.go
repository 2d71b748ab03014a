package readahead

import (
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// TestAheadAllocs: reading ahead allocates nothing but what the READ below does.
func TestAheadAllocs(t *testing.T) {
	need.Speed(t, "it has pools forget things at random")
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
