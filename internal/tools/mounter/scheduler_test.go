package mounter

import (
	"runtime"
	"testing"
)

// TestSpareProcessors: the scheduler has more processors while a mount lasts, and as many as before when it has ended. What
// $GOMAXPROCS says stays.
func TestSpareProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Setenv("GOMAXPROCS", "")
	restore := spareProcessors()
	if got := runtime.GOMAXPROCS(0); got <= before || got > before+maxReaders+1 {
		t.Errorf("%d processors, of %d before", got, before)
	}
	restore()
	t.Setenv("GOMAXPROCS", "2")
	spareProcessors()()
	if got := runtime.GOMAXPROCS(0); got != before {
		t.Errorf("%d processors afterwards, of %d before", got, before)
	}
}
