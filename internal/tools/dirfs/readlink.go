package dirfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// Readlink implements vfs.FS.
func (f *FS) Readlink(ctx context.Context, h vfs.Handle) (target string, a vfs.Attr, err error) {
	if err := f.begin(ctx); err != nil {
		return "", a, err
	}
	defer f.end()
	x, o, err := f.take(h)
	if err != nil {
		return "", a, err
	}
	defer f.leave(o.s)
	defer x.close()
	if o.st.Type != vfs.TypeSymlink {
		return "", a, vfs.ErrInval
	}
	target, err = x.readlink()
	return target, o.st.Attr, fail("readlink", err)
}
