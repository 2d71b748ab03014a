//go:build !unix

package bench

// ownTime is unknown here, and so counts as none.
func ownTime() (cpuTime, error) { return cpuTime{}, nil }
