//go:build linux

package localfs

import (
	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

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

// before is what wcc data tells of the time before an operation. Without the
// lock it could be the work of others, and is nothing: of files as soon as
// another process may write to one (OpenHost), which knows no lock of ours.
func (h *host) before(st *linux.Stat) vfs.PreAttr {
	if h.o.LocalWriters || h.locks.lent.Load() && st.Is(unix.S_IFREG) {
		return vfs.PreAttr{}
	}
	return preAttr(st)
}

// after fills a with what d is now, if that can be told.
func (h *host) after(d *fdcache.Desc, a *vfs.Attr) {
	var st linux.Stat
	if st.Of(d.FD) == nil {
		h.attr(&st, a)
	}
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
