package memfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// Readlink returns the target as it was given to Create.
func (f *FS) Readlink(ctx context.Context, h vfs.Handle) (string, vfs.Attr, error) {
	if err := f.begin(ctx, "readlink", h); err != nil {
		return "", vfs.Attr{}, err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.get(h)
	if err != nil {
		return "", vfs.Attr{}, err
	}
	if n.typ != vfs.TypeSymlink {
		return "", f.attr(n), vfs.ErrInval
	}
	return n.target, f.attr(n), nil
}
