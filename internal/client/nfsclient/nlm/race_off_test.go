//go:build !race

package nlm_test

// raced says that the race detector slows everything down.
const raced = false
