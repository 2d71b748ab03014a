//go:build race

package oncrpc

// checkPhases has a forbidden step of a call's phase panic: see phase.
const checkPhases = true
