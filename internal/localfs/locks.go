//go:build linux

package localfs

import (
	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// noLock is the stripe of who has locked nothing.
const noLock = -1

// lock takes the lock of x's stripe, for unlock to give back. Nothing is locked
// where local programs, which know no such lock, change the tree as well. The caller
// has a place in the lane for metadata: see acquire.
func (v *FS) lock(x vfs.Handle) int { return v.lockIn(x, classMeta) }

// lockIn is lock for who has a place in the lane c.
func (v *FS) lockIn(x vfs.Handle, c class) int {
	if v.o.LocalWriters {
		return noLock
	}
	i := stripe(x)
	v.acquire(i, c)
	return i
}

// lock2 takes the locks of two objects, in an order that all calls share.
func (v *FS) lock2(x, y vfs.Handle) (int, int) {
	if v.o.LocalWriters {
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

// acquire takes a lock. Who waits for it holds no thread, and gives up the place in
// the lane meanwhile: those who change one directory, one after the other, would fill
// the lane, and hold up who has to do with any other. Who has the lock does not wait
// for a place, since others, of other lanes too, wait for the lock: without one to be
// had at once, one is owed. So there may be as many more inside than there are places
// as there are locks that somebody has waited for.
func (v *FS) acquire(i int, c class) {
	l := &v.locks[i]
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
		h.locks[i].Unlock()
	}
}

func (h *host) unlock2(i, j int) {
	h.unlock(j)
	h.unlock(i)
}

// before is what wcc data tells of the time before an operation. Without the
// lock it could be the work of others, and is nothing: of files as soon as
// another process may write to one (OpenHost), which knows no lock of ours.
func (h *host) before(st *stat) vfs.PreAttr {
	if h.o.LocalWriters || h.lent.Load() && st.is(unix.S_IFREG) {
		return vfs.PreAttr{}
	}
	return preAttr(st)
}

// after fills a with what d is now, if that can be told.
func (h *host) after(d *desc, a *vfs.Attr) {
	var st stat
	if st.statFD(d.fd) == nil {
		h.attr(&st, a)
	}
}

// stripe spreads handles over the locks (FNV-1a).
func stripe(x vfs.Handle) int {
	sum := uint32(2166136261)
	for _, b := range x.Bytes() {
		sum = (sum ^ uint32(b)) * 16777619
	}
	return int(sum % lockStripes)
}
