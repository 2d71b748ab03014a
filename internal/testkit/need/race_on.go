//go:build race

package need

// Race says that the race detector watches this test. It takes up to ten times as long, allocates, has pools forget
// things at random, and takes several times the memory.
const Race = true
