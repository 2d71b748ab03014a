//go:build race

package files

// slow: the race detector takes ten times as long.
const slow = true
