//go:build race

package s3

// slow: the race detector takes ten times as long.
const slow = true
