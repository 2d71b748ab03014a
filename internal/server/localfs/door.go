//go:build linux

package localfs

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/server/iogate"
	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/handlemap"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// class is what kind of work a call is: the lane of the gate that it takes.
type class = iogate.Class

const (
	classMeta  = iogate.Meta
	classRead  = iogate.Read
	classWrite = iogate.Write
	classSync  = iogate.Sync
)

// errCrowd is what a call gets that the gate has turned away.
var errCrowd = fmt.Errorf("localfs: too much waits for the disk: %w", vfs.ErrBusy)

// begin is the door that every call comes through before it blocks, and end the
// one that it leaves by: between the two it has a place in a lane of the gate,
// and may hold a thread. A system call in progress cannot be interrupted, so the
// context is looked at here only.
//
// Nobody who has a place waits for another one. What is found without waiting
// for any disk (the attributes of what is open, bytes that are in memory) needs
// none: such calls make do with ready.
func (v *FS) begin(ctx context.Context, c class) error {
	if err := v.ready(ctx); err != nil {
		return err
	}
	return v.enter(ctx, c)
}

// ready is what every call asks first.
func (v *FS) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("localfs: %w", err)
	}
	if v.closed.Load() {
		return fmt.Errorf("localfs: closed: %w", vfs.ErrInval)
	}
	return v.creds.Check()
}

// enter waits for a place.
func (v *FS) enter(ctx context.Context, c class) error {
	err := v.o.Gate.Enter(ctx, c, v.who.Client())
	switch {
	case err == nil:
		return nil
	case errors.Is(err, iogate.ErrFull):
		v.counts.busy.Add(1)
		return errCrowd
	}
	return fmt.Errorf("localfs: %w", err)
}

func (h *host) end(c class) {
	if h.owed[c].Load() > 0 && h.pay(c) {
		return
	}
	h.o.Gate.Leave(c)
}

// pay takes one from what is owed, if it is still there.
func (h *host) pay(c class) bool {
	o := &h.owed[c]
	for n := o.Load(); n > 0; n = o.Load() {
		if o.CompareAndSwap(n, n-1) {
			return true
		}
	}
	return false
}

// beginChange is begin for what a read-only tree refuses.
func (v *FS) beginChange(ctx context.Context, c class) error {
	if v.o.ReadOnly {
		return vfs.ErrROFS
	}
	return v.begin(ctx, c)
}

// release is fds.unpin for a call without a place: the last one to use a file that
// has lost its name waits until its blocks are free. It is closed even if the
// gate gives none, since nobody else will.
func (v *FS) release(d *fdcache.Desc) {
	if !d.Last() {
		v.fds.Unpin(d)
		return
	}
	if v.enter(context.Background(), classMeta) == nil {
		defer v.end(classMeta)
	}
	v.fds.Unpin(d)
}

// glance is a statx of what is open, for a call without a place.
func (v *FS) glance(ctx context.Context, d *fdcache.Desc, st *linux.Stat) error {
	if !v.prompt {
		if err := v.enter(ctx, classMeta); err != nil {
			return err
		}
		defer v.end(classMeta)
	}
	return linux.Fail("statx", st.Of(d.FD))
}

// settling is the map of handles behind the gate. Calls that wait until the map
// is on disk wait without a place, and the one of them that syncs it takes one of
// the lane for syncs.
type settling struct {
	handler
	h *host
	m *handlemap.Map
}

// settle is called with a place in the lane for metadata, and returns with one,
// or with one owed: the gate may have none to spare, and what was begun is better
// ended than broken off.
func (s settling) Settle(m handlemap.Mark) error {
	if s.m.Settled(m) {
		return nil
	}
	g := s.h.o.Gate
	g.Leave(classMeta)
	err := s.handler.Settle(m)
	if g.Enter(context.Background(), classMeta, "") != nil {
		s.h.owed[classMeta].Add(1)
	}
	return err
}

// gatedSys is the Sys of the map of handles. It gates the sync that settle
// waits for; whatever else the map does to its file is done by who has a place.
type gatedSys struct {
	Sys
	gate *iogate.Lanes
}

// Fdatasync goes without a place if the gate has none: there is one such call
// at a time, and its failing would mean that the disk has failed.
func (s gatedSys) Fdatasync(fd int) error {
	if s.gate.Enter(context.Background(), classSync, "") == nil {
		defer s.gate.Leave(classSync)
	}
	return s.Sys.Fdatasync(fd)
}
