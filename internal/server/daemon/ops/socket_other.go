//go:build !linux

package ops

import (
	"errors"
	"syscall"
)

func shortPath(path string, f func(string) error) error { return f(path) }

func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
