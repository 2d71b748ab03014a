//go:build linux

package localfs

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// Root implements vfs.FS.
func (v *FS) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) {
	a, err := v.GetAttr(ctx, v.root, vfs.MaskV3)
	return v.root, a, err
}

// GetAttr implements vfs.FS. It returns every attribute that there is. Of what
// is open and has its place in the tree they are in memory.
func (v *FS) GetAttr(ctx context.Context, x vfs.Handle, _ vfs.Mask) (a vfs.Attr, err error) {
	if err := v.ready(ctx); err != nil {
		return a, err
	}
	var st stat
	if !v.atHand(x, &st) {
		if err := v.statObject(ctx, x, &st); err != nil {
			return a, err
		}
	}
	v.attr(&st, &a)
	return a, nil
}

// atHand fills st with the attributes of x if that surely takes no waiting.
func (v *FS) atHand(x vfs.Handle, st *stat) bool {
	if !v.prompt {
		return false
	}
	d := v.fds.getAny(x)
	if d == nil {
		return false
	}
	defer v.release(d)
	return v.nearRoot(d) && st.statFD(d.fd) == nil && st.Nlink > 0
}

// nearRoot reports whether d lies in the tree, if that can be told from where it
// was the last time. The directories above one that is open are in memory.
func (h *host) nearRoot(d *desc) bool {
	if d.kind != unix.S_IFDIR || d.key.h == h.root {
		return true
	}
	n := int(d.depth.Load())
	var up stat
	return n > 0 && up.statx(d.fd, &ups[3*(maxUps-n)], 0) == nil && h.isRoot(&up)
}

// statObject fills st with the attributes of x.
func (v *FS) statObject(ctx context.Context, x vfs.Handle, st *stat) error {
	if err := v.enter(ctx, classMeta); err != nil {
		return err
	}
	defer v.end(classMeta)
	d, err := v.object(x)
	if err != nil {
		return err
	}
	defer v.fds.unpin(d)
	return v.stat(d, st)
}
