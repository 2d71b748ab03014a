package localio

import (
	"context"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/proto/localio"
)

// retired is added to grant.users when no new users are admitted.
const retired = math.MinInt64

// grant is a descriptor that the server has handed out. After it was revoked, or given back, it
// is closed when the last call that uses it has ended.
type grant struct {
	// The fields that every call uses, in one cache line.
	users      atomic.Int64
	ops, bytes atomic.Uint64
	l          *link
	n          *node
	fd         int
	slot       int
	generation uint32
	slow       atomic.Bool // RWF_NOWAIT never works
	dirty      atomic.Bool // with data; see node.dirty

	key      key
	id       identity
	finished atomic.Bool
	hostOnce sync.Once
	host     *os.File // of HostFile; it owns fd then

	files int // open files that use it; n.mu

	parted       bool // shared.mu: no longer held
	idle         bool // shared.mu: in its list, between these two
	older, newer *grant
	since        time.Time
}

// enter makes the caller a user of g, if g is valid. The caller calls leave.
func (g *grant) enter() bool {
	if g.admits() {
		return true
	}
	g.retire()
	return false
}

// admits is enter for a caller that holds a lock.
func (g *grant) admits() bool {
	if g.users.Add(1) > 0 && g.stands() {
		return true
	}
	g.leave()
	return false
}

// stands reports whether the server has not revoked g. g is open.
func (g *grant) stands() bool {
	return g.l.page.Load(g.slot) == g.generation && g.l.page.Load(0) == localio.PAGE_LIVE
}

// valid reports whether enter would probably succeed.
func (g *grant) valid() bool { return g.users.Load() >= 0 && g.stands() }

func (g *grant) leave() {
	if g.users.Add(-1) == retired {
		g.finish()
	}
}

// retire admits no more users. It may be called several times. The caller holds no lock. The next call
// that needs the object asks again.
func (g *grant) retire() {
	n, s := g.n, g.n.s
	n.mu.Lock()
	if n.grants[g.key] == g {
		delete(n.grants, g.key)
	}
	n.mu.Unlock()
	g.l.forget(g)
	for {
		users := g.users.Load()
		if users < 0 {
			return
		}
		if g.users.CompareAndSwap(users, users+retired) {
			if !g.stands() && g.l.page.Load(0) == localio.PAGE_LIVE {
				s.count.revoked.Add(1)
			}
			s.gone(g)
			if users == 0 {
				g.finish()
			}
			return
		}
	}
}

// finish closes g in the background.
func (g *grant) finish() {
	if g.finished.CompareAndSwap(false, true) {
		g.n.s.work.Go(g.close)
	}
}

// close syncs g if necessary, closes it, and gives the slot back.
func (g *grant) close() {
	n, s := g.n, g.n.s
	if g.dirty.Load() {
		if _, err := n.sync(context.Background(), true); err != nil {
			s.notSynced(err)
		}
	}
	n.mu.Lock()
	delete(n.dirty, g)
	running := n.running // it may be about to sync g
	n.mu.Unlock()
	if running != nil {
		<-running.done
	}
	s.gate.enterSync()
	err := g.closeFD()
	s.gate.leaveSync()
	if err != nil {
		s.o.Log.Warn("localio: closing a descriptor", "error", err)
	}
	g.l.giveBack(localio.SessionFile{Slot: uint32(g.slot), Generation: g.generation})
	s.closed(g)
}

func (g *grant) closeFD() error {
	if g.host != nil {
		return g.host.Close()
	}
	return closeFD(g.fd)
}

// file is g as an os.File, for other packages. The caller is a user of g.
func (g *grant) file() *os.File {
	g.hostOnce.Do(func() { g.host = os.NewFile(uintptr(g.fd), "localio:"+g.n.h.String()) })
	return g.host
}

// sync makes what was written by g stable.
func (g *grant) sync(full bool) error {
	err := syncFD(g.fd, full)
	if err != nil {
		return fail("sync", err)
	}
	return nil
}
