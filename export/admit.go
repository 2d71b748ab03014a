package export

import (
	"cmp"
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// Gate says whether any export has a rule that admits one address and port. Code
// that keeps something for a client (a reply, a place in a queue, memory) asks here
// first: for a client that no rule admits it keeps nothing, and evicts nothing of
// other clients. [View] decides about a single export.
//
// A client whose name is not known yet is not admitted. Its look-up has begun, and
// the gate admits it when a name is found that a rule matches. All methods may be
// called concurrently.
type Gate struct {
	t      *Table
	origin origin
	last   atomic.Pointer[admission]
}

// admission is what a gate has found.
type admission struct {
	st    *state
	ok    bool
	until time.Time // look again; zero: never
}

// Gate returns the gate of a client. An invalid remote is a connection without an
// address, as in [Table.For].
func (t *Table) Gate(remote netip.AddrPort) *Gate {
	return &Gate{t: t, origin: origin{addr: plain(remote.Addr()), port: remote.Port()}}
}

// Admits reports whether a rule of some export admits the client, as far as that is
// known now. It never waits. It remembers what it has found until the exports are
// replaced or a name grows old.
func (g *Gate) Admits() bool {
	st := g.t.state.Load()
	if a := g.last.Load(); a != nil && a.st == st && (a.until.IsZero() || g.t.now().Before(a.until)) {
		return a.ok
	}
	a := &admission{st: st}
	a.ok, a.until = g.t.admits(st, g.origin)
	if a.ok || a.until.IsZero() {
		// A refusal that a name may change is not remembered: the look-up may end
		// at any time and let the client in.
		g.last.Store(a)
	}
	return a.ok
}

// Knows reports whether any export has a rule for the client's address, from whatever
// port. Unlike Admits it waits for names: two seconds for each export at most, or
// until ctx ends. An error says that a name by which the client might be known could
// not be looked up.
func (g *Gate) Knows(ctx context.Context) (bool, error) {
	st := g.t.state.Load()
	var failed error
	for i := range st.entries {
		e := &st.entries[i]
		if len(e.rules) == 0 {
			return true, nil
		}
		r, _, err := g.t.clients.match(ctx, e.rules, g.origin.addr)
		if err == nil && r != nil {
			return true, nil
		}
		failed = cmp.Or(failed, err)
	}
	return false, failed
}

// admits looks for an export that admits o. If names were looked up, until is when
// to look again.
func (t *Table) admits(st *state, o origin) (ok bool, until time.Time) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // so that match does not wait for the name service
	for i := range st.entries {
		e := &st.entries[i]
		if len(e.rules) == 0 {
			return true, time.Time{}
		}
		r, good, err := t.clients.match(ctx, e.rules, o.addr)
		if err == nil && r != nil && !r.keepsOut(o) {
			return true, good
		}
		if !good.IsZero() && (until.IsZero() || good.Before(until)) {
			until = good
		}
	}
	return false, until
}

// keepsOut reports whether the rule, which matches, refuses the port.
func (r *rule) keepsOut(o origin) bool {
	return r.Secure && (o.port == 0 || o.port >= securePorts)
}

// Admits is nil if h is a handle of an export that admits the caller, and otherwise
// the error that any call with h would return. It waits for names as calls do.
func (v *View) Admits(ctx context.Context, h vfs.Handle) error {
	r, err := v.ref(ctx, &h)
	if err == nil {
		r.leave()
	}
	return err
}
