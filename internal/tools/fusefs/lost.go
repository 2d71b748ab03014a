//go:build linux

package fusefs

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/vfs"
)

// lostError is a file of which something could not be made stable.
type lostError struct {
	path string // as last known
	err  error
}

// lost is the error of a file whose closing nobody waited for.
func (m *Mount) lost(n *node, err error) error {
	return &lostError{filepath.Join(m.dir, m.nodes.path(n)), err}
}

// Error names the file, in one line whatever its name is, and why.
func (e *lostError) Error() string { return fault.Clean(e.path) + ": " + cause(e.err) }

// Unwrap returns what the file system said.
func (e *lostError) Unwrap() error { return e.err }

// cause is why bytes are lost, for those who unmount: on whose disk there is no room, and who has not answered.
func cause(err error) string {
	switch {
	case errors.Is(err, vfs.ErrNoSpace):
		return "no space left on the server"
	case errors.Is(err, vfs.ErrQuota):
		return "the quota on the server is used up"
	case errors.Is(err, vfs.ErrROFS):
		return "the server's file system is read-only by now"
	case errors.Is(err, context.Canceled):
		return "given up before the server had confirmed what was written"
	}
	return err.Error()
}
