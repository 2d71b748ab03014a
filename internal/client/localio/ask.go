package localio

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// claim is a caller as AUTH_SYS names it in a call over the network, with the same limit on groups.
type claim struct {
	uid, gid uint32
	n        uint8
	groups   [16]uint32
}

func claimOf(c *vfs.Caller) (who claim) {
	who.uid, who.gid = c.UID, c.GID
	who.n = uint8(copy(who.groups[:], c.Groups))
	return who
}

// ask is a request for a descriptor. All calls that want that descriptor wait for it together.
type ask struct {
	l    *link
	n    *node
	key  key
	id   uint32 // in the session
	done chan struct{}
	late atomic.Bool // it has taken too long: no call waits for it any more
}

// refusal says why there is no descriptor.
type refusal struct {
	l      *link
	why    string
	status vfs.Status // the server's answer if asked over the network, or 0
	until  time.Time  // zero: while the file is open
	brief  bool       // there may soon be room
}

func crowded(l *link, why string) *refusal {
	return &refusal{l: l, why: why, until: time.Now().Add(crowdedTime), brief: true}
}

// holds reports whether r, which may be nil, is still in force.
func (r *refusal) holds(l *link) bool {
	return r != nil && r.l == l && (r.until.IsZero() || time.Now().Before(r.until))
}

// way is how a file is read, or written: by a descriptor or over the network.
type way struct {
	used    atomic.Bool // it was used over the network: at the next use a descriptor pays
	grant   atomic.Pointer[grant]
	refusal atomic.Pointer[refusal]
}

// obtain finds a grant, or asks for one and waits. The caller becomes a user of it. nil: there is none
// now, for the reason that f.whyNot gives.
func (f *file) obtain(ctx context.Context, access vfs.Share, small bool) *grant {
	s, w := f.fs.s, f.way(access)
	l := s.link.Load()
	k := key{f.fs.who, access}
	if s.o.Mode == Require {
		return f.insist(ctx, k, w)
	}
	if l == nil || w.refusal.Load().holds(l) {
		return nil
	}
	for range 2 {
		g, a := f.find(l, k, w, small)
		if g != nil || a == nil {
			return g
		}
		if !a.wait(ctx, s.wait) {
			return nil
		}
	}
	return nil
}

// insist is obtain in mode Require, without the network. It waits for a slow server and for room, and
// asks again for a descriptor that was revoked before its use.
func (f *file) insist(ctx context.Context, k key, w *way) *grant {
	s := f.fs.s
	for end := time.Now().Add(s.wait); ; {
		l := s.link.Load()
		if l == nil {
			return nil
		}
		var answered <-chan struct{} // nil, which never receives, while there is no room
		until := end
		if r := w.refusal.Load(); !r.holds(l) {
			g, a := f.find(l, k, w, false)
			if g != nil {
				return g
			}
			if a == nil {
				continue // a was refused
			}
			answered = a.done
		} else if !r.brief {
			return nil
		} else if r.until.Before(end) {
			until = r.until
		}
		if !pause(ctx, answered, until) || !time.Now().Before(end) {
			return nil
		}
	}
}

// pause waits until come is closed, or until a time. It returns false if ctx has ended.
func pause(ctx context.Context, come <-chan struct{}, until time.Time) bool {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-come:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// find returns an existing grant, of which the caller becomes a user, or the ask to wait for, or
// neither. A small use does not wait.
func (f *file) find(l *link, k key, w *way, small bool) (*grant, *ask) {
	n := f.n
	n.mu.Lock()
	old := n.grants[k]
	if old != nil && old.admits() {
		f.attach(old, w)
		n.mu.Unlock()
		return old, nil
	}
	var a *ask
	var r *refusal
	var ours bool
	if !small {
		a, r, ours = n.await(l, k)
	}
	n.mu.Unlock()
	if old != nil {
		old.retire()
	}
	if r != nil {
		w.refusal.Store(r)
		n.s.refused(r)
	}
	if ours && !l.ask(a) {
		a.refused(crowded(l, "too many files are being opened"))
	}
	return nil, a
}

// await returns the ask to wait for, or the reason why there is none. ours says that the ask is new and
// the caller must send it. mu is held.
func (n *node) await(l *link, k key) (a *ask, r *refusal, ours bool) {
	if r := n.refusals[k]; r.holds(l) {
		return nil, r, false
	}
	if a := n.asks[k]; a != nil {
		return a, nil, false
	}
	if !l.known(&k.who) {
		return nil, l.stranger(&k.who), false
	}
	if !n.s.reserve(l) {
		return nil, crowded(l, "as many files as are allowed are in use"), false
	}
	n.s.hold(n)
	a = &ask{l: l, n: n, key: k, done: make(chan struct{})}
	n.asks[k] = a
	return a, nil, true
}

// attach makes f use g from now on, for w. The caller is a user of g. n.mu is held.
func (f *file) attach(g *grant, w *way) {
	old := w.grant.Load()
	if f.closed.Load() || old == g {
		return
	}
	if g.files++; g.files == 1 {
		g.n.s.unpark(g)
	}
	w.grant.Store(g)
	if old != nil {
		old.release()
	}
}

// release notes that a file uses g no more. n.mu is held.
func (g *grant) release() {
	if g.files--; g.files == 0 {
		g.n.s.park(g)
	}
}

// wait reports whether a has been answered, in time and before ctx ends.
func (a *ask) wait(ctx context.Context, patience time.Duration) bool {
	select {
	case <-a.done:
		return true
	default:
	}
	if a.late.Load() {
		return false
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-a.done:
		return true
	case <-timer.C:
		a.late.Store(true)
	case <-ctx.Done():
	}
	return false
}

// granted completes a with g.
func (a *ask) granted(g *grant) {
	n, s := a.n, a.n.s
	s.admit(g)
	n.mu.Lock()
	n.grants[a.key] = g
	delete(n.asks, a.key)
	close(a.done)
	if g.files == 0 {
		s.park(g)
	}
	n.mu.Unlock()
}

// refused completes a without a descriptor.
func (a *ask) refused(r *refusal) {
	n, s := a.n, a.n.s
	n.mu.Lock()
	delete(n.asks, a.key)
	if n.files > 0 {
		n.refusals[a.key] = r
	}
	close(a.done)
	n.mu.Unlock()
	s.refused(r)
	s.unreserve()
	s.drop(n)
}
