//go:build race

package v3_test

// raceEnabled: under the race detector sync.Pool forgets at random, and so what
// is allocated means nothing.
const raceEnabled = true
