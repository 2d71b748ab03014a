//go:build !race

package need

// Race says whether the race detector watches this test.
const Race = false
