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

// noLock is the stripe of a call that has locked nothing.
const noLock = -1

// lock takes the lock of d's stripe, for unlock to give back. Nothing is locked
// where local programs, which know no such lock, change the tree as well, and no other
// FS relies on it. The caller has a place in the lane for metadata: see acquire.
func (v *FS) lock(d *fdcache.Desc) int { return v.lockIn(d, classMeta) }

// lockIn is lock for a call that has a place in the lane c.
func (v *FS) lockIn(d *fdcache.Desc, c class) int {
	if v.unlocked() {
		return noLock
	}
	i := stripe(d)
	v.acquire(i, c)
	return i
}

// unlocked says that nobody locks.
func (h *host) unlocked() bool { return h.o.LocalWriters && h.o.Locks == nil }

// lock2 takes the locks of two objects, in an order that all calls share.
func (v *FS) lock2(x, y *fdcache.Desc) (int, int) {
	if v.unlocked() {
		return noLock, noLock
	}
	i, j := stripe(x), stripe(y)
	i, j = min(i, j), max(i, j)
	v.acquire(i, classMeta)
	if i == j {
		return i, noLock
	}
	v.acquire(j, classMeta)
	return i, j
}

// acquire takes a lock. A call that waits for it holds no thread, and gives up the place in
// the lane meanwhile: calls that change one directory, one after the other, would fill
// the lane, and hold up calls in any other. The call that has the lock does not wait
// for a place, since others, of other lanes too, wait for the lock: without one to be
// had at once, one is owed. So there may be as many more inside than there are places
// as there are locks that somebody has waited for.
func (v *FS) acquire(i int, c class) {
	l := &v.locks.stripes[i]
	if l.TryLock() {
		return
	}
	v.end(c)
	l.Lock()
	if !v.o.Gate.TryEnter(c) {
		v.owed[c].Add(1)
	}
}

func (h *host) unlock(i int) {
	if i != noLock {
		h.locks.stripes[i].Unlock()
	}
}

func (h *host) unlock2(i, j int) {
	h.unlock(j)
	h.unlock(i)
}

// stripe spreads objects over the locks, by the inode number: an object has the same by
// whatever mount and export it is reached, and keeps it when it is copied to another
// layer. Others with that number share the lock, which does no harm; so does what
// cannot be looked at any more.
func stripe(d *fdcache.Desc) int {
	if i := d.Stripe.Load(); i != 0 {
		return int(i - 1)
	}
	var st linux.Stat
	_ = st.Of(d.FD)
	noteStripe(d, &st)
	return int(d.Stripe.Load() - 1)
}

// noteStripe notes in which stripe d is, which st describes.
func noteStripe(d *fdcache.Desc, st *linux.Stat) {
	d.Stripe.Store(1 + int32(st.Ino*0x9e3779b97f4a7c15>>32%lockStripes)) // Fibonacci's hash
}
