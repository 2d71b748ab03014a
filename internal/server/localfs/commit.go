//go:build linux

package localfs

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// Commit implements vfs.File. The range is not looked at: the kernel syncs a
// file as a whole. It is an fsync rather than an fdatasync, since COMMIT promises
// the metadata as well (RFC 1813, section 3.3.21): a file that was written in
// place has a new mtime, by which clients and backups judge what they know.
func (f *file) Commit(ctx context.Context, _, _ uint64, w *vfs.Written) error {
	if err := f.ready(ctx); err != nil {
		return err
	}
	defer f.leave()
	v := f.fs
	d := f.any()
	if f.w == nil {
		// Errors are told to the descriptor that wrote.
		if wd := v.fds.Get(d.H, fdcache.Write); wd != nil {
			defer v.release(wd)
			d = wd
		}
	}
	*w = vfs.Written{Committed: vfs.FileSync}
	var st linux.Stat
	if err := v.statOpen(ctx, d, &st); err != nil {
		return err
	}
	if err := f.check(&st, f.w == nil, f.w != nil); err != nil {
		return err
	}
	w.WCC.Before = v.before(&st)
	if err := v.syncDesc(ctx, d, true); err != nil {
		return err
	}
	// Read after the sync: had it failed, for us or for the one that we
	// joined, this would be the new one.
	w.Verf = v.verifier()
	if v.statOpen(ctx, d, &st) == nil {
		v.attr(&st, &w.WCC.After)
	}
	return nil
}

// Sync implements vfs.Syncer. What cannot be opened (a symbolic link, a device)
// cannot be synced on its own either: there the whole file system is.
func (v *FS) Sync(ctx context.Context, x vfs.Handle) error {
	if err := v.ready(ctx); err != nil {
		return err
	}
	d, err := v.syncable(ctx, x)
	if errors.Is(err, vfs.ErrBusy) {
		// No descriptor is free. The caller has made a change, and must not be told to make
		// it again: what it made is synced with all the file system.
		return v.syncIn(ctx, vfs.Handle{}, true, nil, func(bool) error { return v.syncAll() })
	}
	if err != nil {
		return err
	}
	defer v.release(d)
	switch d.Kind {
	case unix.S_IFREG:
		return v.syncDesc(ctx, d, true)
	case unix.S_IFDIR:
		return v.syncIn(ctx, x, true, nil, func(bool) error { return v.syncDir(d) })
	}
	return v.syncIn(ctx, vfs.Handle{}, true, nil, func(bool) error { return v.syncAll() })
}

// syncable returns the pinned descriptor through which x is synced: of a regular
// file the one that has written to it, if there is one.
func (v *FS) syncable(ctx context.Context, x vfs.Handle) (*fdcache.Desc, error) {
	if d := v.fds.Get(x, fdcache.Write); d != nil {
		return d, nil
	}
	if err := v.enter(ctx, classMeta); err != nil {
		return nil, err
	}
	defer v.end(classMeta)
	o, err := v.object(x)
	if err != nil || o.Kind != unix.S_IFREG {
		return o, err
	}
	defer v.fds.Unpin(o)
	return v.data(x, fdcache.Read)
}

// syncDir makes the names in the directory d stable. One that this process may change and
// not read, which is not root then, is synced with all the file system.
func (v *FS) syncDir(d *fdcache.Desc) error {
	fd, err := linux.Reopen(d.FD, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, unix.EACCES) {
		return v.syncAll()
	}
	if err != nil {
		return linux.Fail("open", err)
	}
	return linux.Close(fd, v.fsync(fd))
}

// syncAll makes the whole file system stable.
func (v *FS) syncAll() error {
	fd, err := linux.Reopen(v.rootFD, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return linux.Fail("open", err)
	}
	return linux.Close(fd, linux.Fail("syncfs", v.disk.Syncfs(fd)))
}

// syncDesc makes stable what was written to d before the call; all of the
// metadata too, if full. An error has changed the write verifier before anyone
// else can have been told that a later sync went well: the kernel reports each
// failure once, and has thrown the data away by then.
func (v *FS) syncDesc(ctx context.Context, d *fdcache.Desc, full bool) error {
	return v.syncIn(ctx, d.H, full, d, func(full bool) error {
		return v.syncNow(d, full)
	})
}

// syncNow is the sync of syncDesc, for a call that shares it with none.
func (h *host) syncNow(d *fdcache.Desc, full bool) (err error) {
	h.fds.Dirty.Clean(d)
	if full {
		err = h.fsync(d.FD)
	} else {
		err = h.fdatasync(d.FD)
	}
	if err != nil {
		h.diskFailed(err)
	}
	return err
}

// syncIn makes the object x stable by sync, or joins the sync of a call that does. Where many
// objects are to be made stable at once, their calls share one sync of the whole file system
// instead. d is what x was written through, or nil. A call that syncs for others does not give up
// with its own context.
func (v *FS) syncIn(ctx context.Context, x vfs.Handle, full bool, d *fdcache.Desc, sync func(full bool) error) error {
	led := false
	err := v.flights.join(ctx, x, full, func(full bool) error {
		led = true
		if d != nil {
			v.fds.Dirty.Clean(d)
		}
		return v.whole.Or(func() error {
			return v.syncPlaced(ctx, func() error { return sync(full) })
		})
	})
	if !led {
		v.counts.shared.Add(1)
	}
	return err
}

// syncPlaced runs sync with a place in the lane for syncs. Calls that join it need none.
func (v *FS) syncPlaced(ctx context.Context, sync func() error) error {
	if err := v.enter(context.WithoutCancel(ctx), classSync); err != nil {
		return err
	}
	defer v.end(classSync)
	v.counts.syncs.Add(1)
	return sync()
}

// syncLast syncs a descriptor that is about to be closed with the cache. No call is in
// progress by then.
func (h *host) syncLast(d *fdcache.Desc) error {
	err := h.fdatasync(d.FD)
	if err != nil {
		h.diskFailed(err)
	}
	return err
}
