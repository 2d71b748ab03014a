//go:build !race

package oncrpc

// checkPhases is false: a step of a call's phase costs one store.
const checkPhases = false
