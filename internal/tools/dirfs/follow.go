package dirfs

import (
	"context"
	"errors"
	"syscall"

	"github.com/nfsbox/nfsbox/vfs"
)

// Follow returns the attributes of the object that name in dir leads to, as stat(2) does. It
// may lie outside the FS: the caller can compare it, but has no handle of it.
func (f *FS) Follow(ctx context.Context, dir vfs.Handle, name string) (vfs.Attr, error) {
	if err := checkName(name); err != nil {
		return vfs.Attr{}, err
	}
	if err := f.begin(ctx); err != nil {
		return vfs.Attr{}, err
	}
	defer f.end()
	s, d, err := f.enter(dir)
	if err != nil {
		return vfs.Attr{}, err
	}
	defer f.leave(s)
	var st stat
	if err := d.follow(name, &st); err != nil {
		if errors.Is(err, syscall.ELOOP) {
			return vfs.Attr{}, err
		}
		return vfs.Attr{}, fail("stat", err)
	}
	return st.Attr, nil
}
