//go:build !linux

package fusefs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// Mount is a mounted file system; here there is none.
type Mount struct{}

// New is ErrUnsupported.
func New(vfs.FS, string, Options) (*Mount, error) { return nil, ErrUnsupported }

// Serve returns at once.
func (*Mount) Serve() {}

// Unmount is ErrUnsupported.
func (*Mount) Unmount(bool) error { return ErrUnsupported }

// Drain has nothing to wait for.
func (*Mount) Drain(context.Context) Unfinished { return Unfinished{} }

// Wait is ErrUnsupported.
func (*Mount) Wait() error { return ErrUnsupported }

// Locks has none.
func (*Mount) Locks() (posix, flock bool) { return false, false }

// Unmount is ErrUnsupported.
func Unmount(string, bool, bool) error { return ErrUnsupported }
