//go:build linux

package localfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// Root implements vfs.FS.
func (v *FS) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) {
	a, err := v.GetAttr(ctx, v.root, vfs.MaskV3)
	return v.root, a, err
}

// GetAttr implements vfs.FS. It returns every attribute that there is.
func (v *FS) GetAttr(ctx context.Context, x vfs.Handle, _ vfs.Mask) (a vfs.Attr, err error) {
	if err := v.begin(ctx, classMeta); err != nil {
		return a, err
	}
	defer v.end(classMeta)
	d, err := v.object(x)
	if err != nil {
		return a, err
	}
	defer v.fds.unpin(d)
	var st stat
	if err := v.stat(d, &st); err != nil {
		return a, err
	}
	v.attr(&st, &a)
	return a, nil
}
