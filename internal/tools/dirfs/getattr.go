package dirfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// GetAttr implements vfs.FS. It returns all attributes.
func (f *FS) GetAttr(ctx context.Context, h vfs.Handle, _ vfs.Mask) (vfs.Attr, error) {
	if err := f.begin(ctx); err != nil {
		return vfs.Attr{}, err
	}
	defer f.end()
	_, o, err := f.find(h)
	if err != nil {
		return vfs.Attr{}, err
	}
	f.leave(o.s)
	return o.st.Attr, nil
}
