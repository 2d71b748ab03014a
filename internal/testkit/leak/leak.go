// Package leak is for tests that look for goroutines of ours that nobody has ended,
// when all tests of a package have cleaned up.
package leak

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

const (
	// patience is how long goroutines may take to end. It is spent on failure alone;
	// the runtime needs a moment to bury them, and a busy machine a longer one.
	patience = 20 * time.Second
	tick     = 5 * time.Millisecond

	// maxStacks bounds what is read of all stacks, in bytes. What is beyond is not seen.
	maxStacks = 4 << 20
)

// Main is the whole of a TestMain: it runs the tests, which have failed if goroutines
// of this module are left behind.
func Main(m *testing.M) {
	code := m.Run()
	if left := behind("nfsbox/nfsbox", patience); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "goroutines left behind:\n%s\n", strings.Join(left, "\n\n"))
		code = max(code, 1)
	}
	os.Exit(code)
}

// behind are the stacks of other goroutines that name what, when none is left or the
// time is up.
func behind(what string, limit time.Duration) (left []string) {
	buf := make([]byte, maxStacks)
	for end := time.Now().Add(limit); ; time.Sleep(tick) {
		left = left[:0]
		stacks := string(buf[:runtime.Stack(buf, true)])
		_, others, _ := strings.Cut(stacks, "\n\n") // the first is our own
		for g := range strings.SplitSeq(others, "\n\n") {
			if strings.Contains(g, what) {
				left = append(left, g)
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}
