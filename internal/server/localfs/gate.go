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

// errFull is what a call gets that the gate has turned away.
var errFull = fmt.Errorf("localfs: too much waits for the disk: %w", vfs.ErrBusy)

// begin is called before anything that may block, and end after it. Between the two the
// call has a place in a lane of the gate, and may hold a thread. A system call in progress
// cannot be interrupted, so the context is looked at here only.
//
// No call that has a place waits for another one. What is found without waiting for a disk
// (attributes of open files, bytes in memory) needs no place: such calls make do with
// ready.
func (v *FS) begin(ctx context.Context, c class) error {
	if err := v.ready(ctx); err != nil {
		return err
	}
	return v.enter(ctx, c)
}

// ready refuses a call whose context has ended, after Close, or on a thread that is not
// itself.
func (v *FS) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("localfs: %w", err)
	}
	if v.closed.Load() {
		return fmt.Errorf("localfs: closed: %w", vfs.ErrInval)
	}
	return v.creds.Check()
}

// enter waits for a place in the gate. With too many calls in the queue it is errFull.
func (v *FS) enter(ctx context.Context, c class) error {
	err := v.o.Gate.Enter(ctx, c, v.who.Client())
	switch {
	case err == nil:
		return nil
	case errors.Is(err, iogate.ErrFull):
		v.counts.busy.Add(1)
		return errFull
	}
	return fmt.Errorf("localfs: %w", err)
}

// end gives the place back, unless the lane has one more call inside than it has places.
func (h *host) end(c class) {
	if h.excess[c].Load() > 0 && h.payBack(c) {
		return
	}
	h.o.Gate.Leave(c)
}

// payBack takes one from excess, if there is one.
func (h *host) payBack(c class) bool {
	o := &h.excess[c]
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

// release is fds.Unpin for a call without a place: the last one to use a file that has lost
// its name waits until its blocks are free. It is closed also if the gate gives no place,
// since no other call will close it.
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

// statOpen is a statx of an open file, for a call without a place.
func (v *FS) statOpen(ctx context.Context, d *fdcache.Desc, st *linux.Stat) error {
	if !v.attrsInMemory {
		if err := v.enter(ctx, classMeta); err != nil {
			return err
		}
		defer v.end(classMeta)
	}
	return linux.Fail("statx", st.Of(d.FD))
}

// gatedMap is the map of handles behind the gate. A call that waits until the map is on
// disk has no place meanwhile. The one of them that syncs takes a place in the lane for
// syncs.
type gatedMap struct {
	handler
	h *host
	m *handlemap.Map
}

// WaitStable is called with a place in the lane for metadata, and returns with one. If the
// gate has none to spare, the lane has one call more inside than places (excess): what was
// begun is better ended than broken off.
func (s gatedMap) WaitStable(m handlemap.LSN) error {
	if s.m.Stable(m) {
		return nil
	}
	g := s.h.o.Gate
	g.Leave(classMeta)
	err := s.handler.WaitStable(m)
	if g.Enter(context.Background(), classMeta, "") != nil {
		s.h.excess[classMeta].Add(1)
	}
	return err
}

// gatedSys is the Sys of the map of handles. It gates the sync that WaitStable waits for.
// The map's other calls are made by calls that have a place.
type gatedSys struct {
	Sys
	gate *iogate.Lanes
}

// Fdatasync goes without a place if the gate has none. There is one such call at a time,
// and its failure would mean that the disk has failed.
func (s gatedSys) Fdatasync(fd int) error {
	if s.gate.Enter(context.Background(), classSync, "") == nil {
		defer s.gate.Leave(classSync)
	}
	return s.Sys.Fdatasync(fd)
}

// noLock is the stripe of a call that has locked nothing.
const noLock = -1

// lock takes the lock of d's stripe, for unlock to give back. Nothing is locked where local
// programs, which know no such lock, change the tree as well and no other FS relies on it.
// The caller has a place in the lane for metadata: see acquire.
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

// unlocked reports whether changes take no locks: see Options.LocalWriters.
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

// acquire takes a lock. A call that waits for it gives up its place in the lane meanwhile:
// the calls that change one directory, one after the other, would fill the lane and hold up
// calls in all others. A call that has the lock does not wait for a place, since others, of
// other lanes too, wait for the lock. If the gate has none at once, the lane has one call
// more inside than places (excess): there can be as many of those as locks that a call has
// waited for.
func (v *FS) acquire(i int, c class) {
	l := &v.locks.stripes[i]
	if l.TryLock() {
		return
	}
	v.end(c)
	l.Lock()
	if !v.o.Gate.TryEnter(c) {
		v.excess[c].Add(1)
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

// stripe spreads objects over the locks, by the inode number. An object has the same number
// by whatever mount and export it is reached, and keeps it when it is copied to another
// layer. Another object with that number shares the lock, which does no harm; so does what
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
