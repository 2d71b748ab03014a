//go:build !linux

package daemon

// hasList cannot tell.
func hasList(string) bool { return false }
