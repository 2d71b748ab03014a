//go:build race

package dir

// slow: the race detector takes ten times as long.
const slow = true
