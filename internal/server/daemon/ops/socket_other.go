//go:build !linux

package ops

import (
	"errors"
	"syscall"
)

// shortPath calls f with the path of a socket.
func shortPath(path string, f func(string) error) error { return f(path) }

// isRefused reports whether no process listens at a socket.
func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
