//go:build linux

package localfs

import (
	"context"
	"errors"

	"github.com/nfsbox/nfsbox/internal/server/localfs/inotify"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.Watcher = (*FS)(nil)

// Watch implements vfs.Watcher. Changes by programs of this host are told, unless there is no
// inotify or this process may not read the object: that is ErrNotSupp.
func (v *FS) Watch(x vfs.Handle, changed func(vfs.Change)) (stop func(), err error) {
	if err := v.begin(context.Background(), classMeta); err != nil {
		return nil, err
	}
	defer v.end(classMeta)
	d, err := v.object(x)
	if err != nil {
		return nil, err
	}
	defer v.fds.Unpin(d)
	return v.watches.Watch(d.H, d.FD, changed)
}

// lookAgain is what the rights to x rest on now, and its names.
func (v *FS) lookAgain(x vfs.Handle) (s inotify.State, err error) {
	if err := v.begin(context.Background(), classMeta); err != nil {
		return s, err
	}
	defer v.end(classMeta)
	d, err := v.object(x)
	if err != nil {
		return s, err
	}
	defer v.fds.Unpin(d)
	if s, err = inotify.Of(d.FD); errors.Is(err, vfs.ErrStale) {
		v.fds.Forget(x) // so that its blocks become free
	}
	return s, err
}

func (h *host) initWatches() {
	h.watches.Look = func(x vfs.Handle) (inotify.State, error) {
		return (&FS{host: h, who: h.creds.Of(nil)}).lookAgain(x)
	}
	h.watches.Report = h.report
	h.watches.Opened = h.fds.AddOpen
}

// changed tells the watchers of x, of which st was told before, of a change that was made
// through this FS, or may have been, since it ended with err.
func (h *host) changed(x vfs.Handle, st *linux.Stat, c vfs.Change, err error) {
	if !errors.Is(err, vfs.ErrPerm) && !errors.Is(err, vfs.ErrAccess) {
		h.watches.Changed(x, st, c)
	}
}
