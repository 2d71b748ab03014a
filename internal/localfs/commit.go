//go:build linux

package localfs

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// Commit implements vfs.File. The range is not looked at: the kernel syncs a
// file as a whole. It is an fsync rather than an fdatasync, since COMMIT promises
// the metadata as well (RFC 1813, section 3.3.21): a file that was written in
// place has a new mtime, by which clients and backups judge what they know.
func (f *file) Commit(ctx context.Context, _, _ uint64, w *vfs.Written) error {
	if err := f.begin(ctx, classSync); err != nil {
		return err
	}
	defer f.end(classSync)
	v := f.fs
	d := f.any()
	if f.w == nil {
		// Errors are told to the descriptor that wrote.
		if wd := v.fds.get(f.x, useWrite); wd != nil {
			defer v.fds.unpin(wd)
			d = wd
		}
	}
	*w = vfs.Written{Committed: vfs.FileSync}
	var st stat
	if err := st.statFD(d.fd); err == nil {
		w.WCC.Before = v.before(&st)
	}
	if err := v.syncDesc(ctx, d, true); err != nil {
		return err
	}
	// Read after the sync: had it failed, for us or for the one that we
	// joined, this would be the new one.
	w.Verf = v.verifier()
	v.after(d, &w.WCC.After)
	return nil
}

// Sync implements vfs.Syncer. What cannot be opened (a symbolic link, a device)
// cannot be synced on its own either: there the whole file system is.
func (v *FS) Sync(ctx context.Context, x vfs.Handle) error {
	if err := v.begin(ctx, classSync); err != nil {
		return err
	}
	defer v.end(classSync)
	o, err := v.object(x)
	if err != nil {
		return err
	}
	defer v.fds.unpin(o)
	switch o.kind {
	case unix.S_IFREG:
		return v.syncFile(ctx, x)
	case unix.S_IFDIR:
		return v.flights.join(ctx, x, true, func(bool) error { return v.syncDir(o) })
	}
	return v.flights.join(ctx, vfs.Handle{}, true, func(bool) error { return v.syncAll() })
}

// syncFile syncs the regular file x through the descriptor that has written to
// it, if there is one.
func (v *FS) syncFile(ctx context.Context, x vfs.Handle) error {
	d := v.fds.get(x, useWrite)
	if d == nil {
		var err error
		if d, err = v.data(x, useRead); err != nil {
			return err
		}
	}
	defer v.fds.unpin(d)
	return v.syncDesc(ctx, d, true)
}

// syncDir makes the names in the directory d stable.
func (v *FS) syncDir(d *desc) error {
	fd, err := reopen(d.fd, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return fail("open", err)
	}
	return closing(fd, fail("fsync", v.sys.Fsync(fd)))
}

// syncAll makes the whole file system stable.
func (v *FS) syncAll() error {
	fd, err := reopen(v.rootFD, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return fail("open", err)
	}
	return closing(fd, fail("syncfs", v.sys.Syncfs(fd)))
}

// syncDirty syncs d's data before d is closed.
func (h *host) syncDirty(d *desc) error { return h.syncDesc(context.Background(), d, false) }

// syncDesc makes stable what was written to d before the call; all of the
// metadata too, if full. An error has changed the write verifier before anyone
// else can have been told that a later sync went well: the kernel reports each
// failure once, and has thrown the data away by then.
func (h *host) syncDesc(ctx context.Context, d *desc, full bool) error {
	return h.flights.join(ctx, d.key.h, full, func(full bool) error {
		d.dirty.Store(false)
		var err error
		if full {
			err = fail("fsync", h.sys.Fsync(d.fd))
		} else {
			err = fail("fdatasync", h.sys.Fdatasync(d.fd))
		}
		if err != nil {
			h.newVerifier()
			h.o.Report(fmt.Errorf("%w; the write verifier has been changed, so that clients send again what was not committed", err))
		}
		return err
	})
}

// flights let concurrent syncs of one object share the work. A sync covers all
// that happened before it began; who comes while one runs waits for the next,
// together with all others who do.
type flights struct {
	mu sync.Mutex
	m  map[vfs.Handle]*lane
}

// lane is the flights of one object: one at a time, so that an error is dealt
// with before the next begins.
type lane struct{ running, next *flight }

type flight struct {
	done chan struct{}
	full bool // someone on board needs more than the data
	err  error
}

func (f *flights) init() { f.m = make(map[vfs.Handle]*lane) }

// join runs sync, or waits for a run of someone else's that begins after the
// call, and returns its error. Whoever merely waits gives up with the context.
func (f *flights) join(ctx context.Context, x vfs.Handle, full bool, sync func(full bool) error) error {
	f.mu.Lock()
	l := f.m[x]
	if l == nil {
		l = &lane{}
		f.m[x] = l
	}
	if n := l.next; n != nil {
		n.full = n.full || full
		f.mu.Unlock()
		select {
		case <-n.done:
			return n.err
		case <-ctx.Done():
			return fmt.Errorf("localfs: sync: %w: %w", vfs.ErrUnknownOutcome, ctx.Err())
		}
	}
	own := &flight{done: make(chan struct{}), full: full}
	l.next = own
	if r := l.running; r != nil {
		f.mu.Unlock()
		<-r.done
		f.mu.Lock()
	}
	l.running, l.next = own, nil
	full = own.full
	f.mu.Unlock()

	own.err = sync(full)

	f.mu.Lock()
	l.running = nil
	if l.next == nil {
		delete(f.m, x)
	}
	f.mu.Unlock()
	close(own.done)
	return own.err
}
