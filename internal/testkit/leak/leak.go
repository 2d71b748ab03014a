// Package leak finds goroutines of this module that are left when all tests of a package have
// cleaned up.
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
	// patience is how long goroutines may take to end: the runtime needs some time, and a busy
	// machine more. Only a failure takes all of it.
	patience = time.Minute
	tick     = 5 * time.Millisecond

	// maxStacks bounds how much of all stacks is read, in bytes. Goroutines beyond it are missed.
	maxStacks = 4 << 20
)

// Main is a whole TestMain: it runs the tests, and fails them if goroutines of this module are
// left, or of others: packages by parts of their paths.
func Main(m *testing.M, others ...string) {
	code := m.Run()
	for _, what := range append([]string{"nfsbox/nfsbox"}, others...) {
		if left := behind(what, patience); len(left) > 0 {
			fmt.Fprintf(os.Stderr, "goroutines left behind:\n%s\n", strings.Join(left, "\n\n"))
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// behind waits until no other goroutine's stack names what, at most for limit, and returns the
// stacks that do.
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
