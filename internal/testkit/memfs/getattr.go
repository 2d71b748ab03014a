package memfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// Root returns the top directory.
func (f *FS) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) {
	h := f.handle(f.root)
	if err := f.begin(ctx, "root", h); err != nil {
		return vfs.Handle{}, vfs.Attr{}, err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	return h, f.attr(f.root), nil
}

// GetAttr returns all attributes, whatever the mask.
func (f *FS) GetAttr(ctx context.Context, h vfs.Handle, _ vfs.Mask) (vfs.Attr, error) {
	if err := f.begin(ctx, "getattr", h); err != nil {
		return vfs.Attr{}, err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.get(h)
	if err != nil {
		return vfs.Attr{}, err
	}
	return f.attr(n), nil
}
