//go:build linux

package localfs

import (
	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// noLock is the stripe of who has locked nothing.
const noLock = -1

// lock takes the lock of x's stripe, for unlock to give back. Nothing is locked
// where local programs, which know no such lock, change the tree as well.
func (h *host) lock(x vfs.Handle) int {
	if h.o.LocalWriters {
		return noLock
	}
	i := stripe(x)
	h.locks[i].Lock()
	return i
}

// lock2 takes the locks of two objects, in an order that all calls share.
func (h *host) lock2(x, y vfs.Handle) (int, int) {
	if h.o.LocalWriters {
		return noLock, noLock
	}
	i, j := stripe(x), stripe(y)
	i, j = min(i, j), max(i, j)
	h.locks[i].Lock()
	if i == j {
		return i, noLock
	}
	h.locks[j].Lock()
	return i, j
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
