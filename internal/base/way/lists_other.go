//go:build !linux

package paths

func hasList(string) bool { return false }
