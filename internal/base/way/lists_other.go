//go:build !linux

package way

func hasList(string) bool { return false }
