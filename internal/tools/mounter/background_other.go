//go:build !linux

package mounter

import (
	"context"
	"os"
	"syscall"

	"github.com/nfsbox/nfsbox/internal/tools/fusefs"
)

// Background is fusefs.ErrUnsupported.
func Background(context.Context, []string, *os.File, *os.File) (int, error) {
	return 0, &SystemError{fusefs.ErrUnsupported}
}

// Detach is fusefs.ErrUnsupported.
func Detach() (func(string), error) { return nil, fusefs.ErrUnsupported }

func (mountPoint) asUser() *syscall.SysProcAttr { return nil }
