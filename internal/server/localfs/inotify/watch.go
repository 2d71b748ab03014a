//go:build linux

package inotify

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// Watch has changed called, from now on until stop, when the rights to x change or one of
// its names goes. fd is any descriptor of x. It is vfs.ErrNotSupp if there is no inotify
// or this process may not read the object, and vfs.ErrBusy at a bound.
func (n *Watches) Watch(x vfs.Handle, fd int, changed func(vfs.Change)) (stop func(), err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.start(); err != nil {
		return nil, err
	}
	if n.n.Load() >= maxWatches {
		return nil, vfs.ErrBusy
	}
	wd, err := unix.InotifyAddWatch(n.fd, linux.ProcPath(fd), watchMask)
	switch {
	case errors.Is(err, unix.ENOSPC):
		return nil, fmt.Errorf("localfs: fs.inotify.max_user_watches: %w", vfs.ErrBusy)
	case errors.Is(err, unix.ENOMEM):
		return nil, linux.Fail("inotify_add_watch", err)
	case err != nil:
		return nil, vfs.ErrNotSupp
	}
	o := n.watched[int32(wd)]
	if o == nil {
		if o, err = n.add(int32(wd), x, fd); err != nil {
			return nil, err
		}
	}
	key := &changed // functions cannot be compared
	o.watchers[key] = struct{}{}
	n.n.Add(1)
	return func() { n.remove(o, key) }, nil
}

// add notes an inode that the kernel has begun to watch. n.mu is held.
func (n *Watches) add(wd int32, x vfs.Handle, fd int) (*watched, error) {
	o := &watched{wd: wd, x: x, watchers: make(map[*func(vfs.Change)]struct{})}
	// What has changed up to here is the caller's to see, who looks afterwards.
	var st linux.Stat
	err := st.Of(fd)
	o.inode = inodeBy(&st)
	n.watched[o.wd], n.byName[o.x], n.byInode[o.inode] = o, o, o
	switch {
	case err == nil && st.Nlink == 0:
		err = vfs.ErrStale
	case err == nil && len(n.watched) > n.most:
		err = vfs.ErrBusy
	}
	if err != nil {
		n.drop(o)
		return nil, linux.Fail("statx", err)
	}
	o.was = stateBy(fd, &st)
	return o, nil
}
