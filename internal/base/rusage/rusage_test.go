package rusage

import (
	"runtime"
	"testing"
)

// TestUsed: a process has used memory, and time on its processor, of which it has more later.
func TestUsed(t *testing.T) {
	if n := MaxRSS(); n < 1<<20 || n > 1<<40 {
		t.Errorf("%d bytes of memory", n)
	}
	if runtime.GOOS == "windows" {
		return
	}
	before, err := CPU()
	if err != nil {
		t.Fatal(err)
	}
	for sum := 0; ; sum++ {
		if now, err := CPU(); err != nil || now.User > before.User {
			return
		}
	}
}
