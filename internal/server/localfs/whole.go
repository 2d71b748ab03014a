//go:build linux

package localfs

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/base/syncfs"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
)

// openWhole has syncs that come together share one of the whole file system, where that tells of
// every failure. With mounts crossed, a tree is more than one file system, and each object is synced
// by itself. So it is where the root cannot be read.
func (v *FS) openWhole() {
	if !v.o.CrossMounts && syncfs.Tells(v.rootFD) {
		_ = v.shareSyncs() // without it, each object is synced by itself
	}
}

// shareSyncs opens the descriptor, before anything is written.
func (v *FS) shareSyncs() error {
	fd, err := linux.Reopen(v.rootFD, unix.O_RDONLY|unix.O_DIRECTORY) // syncfs refuses O_PATH
	if err != nil {
		return linux.Fail("open", err)
	}
	v.wholeFD, v.whole = fd, syncfs.New(v.syncWhole, leastWhole, time.Now)
	return nil
}

// syncWhole makes the whole file system stable for that many calls. An error has changed the
// write verifier before any of them syncs its object by itself. With no place in the gate nothing
// has failed: each call asks for a place of its own, and is told.
func (v *FS) syncWhole(calls int) error {
	if err := v.enter(context.Background(), classSync); err != nil {
		return syncfs.ErrAlone
	}
	defer v.end(classSync)
	v.counts.syncs.Add(1)
	v.counts.shared.Add(uint64(calls - 1))
	err := linux.Fail("syncfs", v.disk.Syncfs(v.wholeFD))
	if err != nil {
		v.diskFailed(err)
	}
	return err
}

// closeWhole closes the descriptor, after the last call.
func (h *host) closeWhole(err error) error {
	if h.wholeFD < 0 {
		return err
	}
	err = linux.Close(h.wholeFD, err)
	h.wholeFD, h.whole = -1, nil
	return err
}
