package memfs

import (
	"context"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// Remove takes a name out of dir. The object goes with its last name, or with
// the last open File.
func (f *FS) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	if err := f.begin(ctx, "remove", dir); err != nil {
		return vfs.WCC{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.getDir(dir)
	if err != nil {
		return vfs.WCC{}, err
	}
	pre := d.pre()
	if err := f.remove(d, name, isDir); err != nil {
		return f.wcc(d, pre), err
	}
	return f.wcc(d, pre), nil
}

func (f *FS) remove(d *inode, name string, isDir bool) error {
	if err := vfs.CheckName(name); err != nil {
		return err
	}
	n, err := f.find(d, name)
	if err != nil {
		return err
	}
	if err := f.mayTake(d, n); err != nil {
		return err
	}
	switch {
	case isDir && n.dir == nil:
		return vfs.ErrNotDir
	case !isDir && n.dir != nil:
		return vfs.ErrIsDir
	case isDir && len(n.dir.names) > 0:
		return vfs.ErrNotEmpty
	}
	now := f.now()
	d.dir.remove(name)
	f.modified(d, now)
	f.unlink(d, n, now)
	return nil
}

// unlink does to n what the loss of its name in d means. Taking the name out
// is the caller's.
func (f *FS) unlink(d, n *inode, now time.Time) {
	f.changed(n, now)
	if n.dir != nil {
		n.nlink = 0
		d.nlink--
	} else {
		n.nlink--
	}
	f.release(n)
}
