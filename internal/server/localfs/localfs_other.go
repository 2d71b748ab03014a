//go:build !linux

package localfs

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"github.com/nfsbox/nfsbox/vfs"
)

// FS is a directory of this host. There is none on this operating system.
type FS struct{ vfs.FS }

// New fails: only Linux has what localfs needs.
func New(string, Options) (*FS, error) {
	return nil, fmt.Errorf("localfs: serving a local directory is not supported on %s: %w", runtime.GOOS, vfs.ErrNotSupp)
}

// Close does nothing.
func (*FS) Close() error { return nil }

// PathOf knows none.
func (*FS) PathOf(vfs.Handle) (string, bool) { return "", false }

// Sync fails.
func (*FS) Sync(context.Context, vfs.Handle) error { return vfs.ErrNotSupp }

// OpenHost fails.
func (*FS) OpenHost(context.Context, vfs.Handle, *vfs.HostOpen) (*os.File, vfs.Attr, error) {
	return nil, vfs.Attr{}, vfs.ErrNotSupp
}

// Squashed is false.
func (*FS) Squashed() bool { return false }

// HandleMode is HandlesAuto.
func (*FS) HandleMode() Mode { return HandlesAuto }

// Snapshot is empty.
func (*FS) Snapshot() Snapshot { return Snapshot{} }
