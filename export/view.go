package export

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// View is all exports of a table as one caller of one client may see them: a
// [vfs.FS] whose handles are sealed. It has the powers [vfs.Locker], [vfs.ACLer],
// [vfs.Putter] and [vfs.HostOpener], as far as the file systems have them
// ([View.Holds]), that of a [vfs.Watcher], and no other.
//
// Every call is judged by the exports and rules as they are when it begins. What
// the rules say of this caller is worked out once and remembered until the next
// Replace, or until a name has to be looked up again.
type View struct {
	t      *Table
	caller *vfs.Caller
	origin origin
	shard  uint32 // of users
	hasty  bool   // changes are answered before they are stable
	// seen are the exports that were used, each in the place of its index. Most
	// callers use one or two; with more exports than places, some share one and
	// are judged again when they take turns.
	seen [seenExports]atomic.Pointer[seen]
}

// seenExports is in how many exports at once a view is judged but once.
const seenExports = 16

// Origin is where calls come from: a connection.
type Origin struct {
	// Remote is the client's address and port; invalid: a connection without one.
	Remote netip.AddrPort
	// User is set for a program on this host whose user the kernel has been asked
	// for. That one it is, with all its groups on this host, whatever its
	// credential says, unless the rule says TrustLocal. Root may speak for
	// everybody. [Anonymous]: the kernel could not tell, and it is nobody.
	// nil: it is the user that the credential says.
	User *uint32
}

// origin is where a call comes from.
type origin struct {
	// local calls are the program's own. No rule concerns them.
	local bool
	addr  netip.Addr // invalid: a connection without one
	port  uint16     // 0: not known
	user  *uint32    // as Origin has it
}

// seen is an export as a caller sees it.
type seen struct {
	st       *state
	e        *entry
	fs       vfs.FS
	rule     *rule       // that matches
	caller   *vfs.Caller // squashed
	readOnly bool
	err      error     // why the caller may not use it; nil: it may
	until    time.Time // judge again; zero: never
}

// As returns the view that c has of all exports. Without a client (c.Client is
// ""), or as nil, c is the program's own: no rule concerns it. If c.Client is an
// address, its rules are those of a client of that address whose port is not
// known, and not secure; if it is something else, those of a client without one.
//
// Renames and links between exports are vfs.ErrXDev. Root is that of the export
// that Mount finds under "/".
func (t *Table) As(c *vfs.Caller) vfs.FS {
	if c == nil || c.Client == "" {
		return t.view(origin{local: true}, c)
	}
	// What is no address is the zero Addr, which is none.
	addr, _ := netip.ParseAddr(c.Client)
	return t.view(origin{addr: plain(addr)}, c)
}

// For returns the view that c has of all exports from the address and port of a
// connection. An invalid remote is a connection that has none, such as one over
// a Unix socket. A nil c is nobody's identity, but the file systems' own: rules
// decide whether and how the client may use an export, and squash nothing.
func (t *Table) For(remote netip.AddrPort, c *vfs.Caller) *View {
	return t.From(Origin{Remote: remote}, c)
}

// From is For, with all that is known of where the calls come from.
func (t *Table) From(o Origin, c *vfs.Caller) *View {
	return t.view(origin{addr: plain(o.Remote.Addr()), port: o.Remote.Port(), user: o.User}, c)
}

func (t *Table) view(o origin, c *vfs.Caller) *View {
	return &View{t: t, caller: c, origin: o, shard: t.views.Add(1)}
}

// As returns the view of another caller from the same place.
func (v *View) As(c *vfs.Caller) vfs.FS { return v.t.view(v.origin, c) }

// Unstable returns the view of the same caller from the same place whose changes of
// names and attributes are not made stable before they are answered, as if each
// export were async. It is for steps of which only the last one is promised to
// anybody, who makes that one, and Commit, by v: a file that is made and written
// under a name of its own, and renamed.
func (v *View) Unstable() *View {
	u := v.t.view(v.origin, v.caller)
	u.hasty = true
	return u
}

// ref is an opened handle: the export as the caller sees it, and the object in
// it. Its holder uses the export's file system until leave.
type ref struct {
	*seen
	v *View
	h vfs.Handle
}

// maxReloads bounds how often a call begins anew because the exports have just
// been replaced. At the bound it is vfs.ErrBusy.
const maxReloads = 16

// ref opens a sealed handle. The caller leaves it if err is nil.
func (v *View) ref(ctx context.Context, sealed *vfs.Handle) (ref, error) {
	for range maxReloads {
		st := v.t.state.Load()
		e, h, err := st.open(sealed)
		if err != nil {
			return ref{}, err
		}
		s, ok, err := v.enter(ctx, st, e)
		if err != nil {
			return ref{}, err
		}
		if ok {
			return ref{seen: s, v: v, h: h}, nil
		}
	}
	return ref{}, vfs.ErrBusy
}

// enter judges the caller and counts it among the users of the export's file
// system. ok is false if st is no longer in force.
func (v *View) enter(ctx context.Context, st *state, e *entry) (s *seen, ok bool, err error) {
	s = v.see(ctx, st, e)
	if s.err != nil {
		return nil, false, s.err
	}
	e.users.enter(v.shard)
	if v.t.state.Load() != st {
		e.users.leave(v.t, v.shard)
		return nil, false, nil
	}
	return s, true, nil
}

// leave ends the use of the export's file system.
func (r *ref) leave() { r.e.users.leave(r.v.t, r.v.shard) }

// see is e as the caller sees it.
func (v *View) see(ctx context.Context, st *state, e *entry) *seen {
	// An entry is of one state: what was seen of an export before a reload is of
	// another entry.
	place := &v.seen[e.index%seenExports]
	if s := place.Load(); s != nil && s.e == e && (s.until.IsZero() || v.t.now().Before(s.until)) {
		return s
	}
	s := v.judge(ctx, st, e)
	if ctx.Err() == nil { // else it did not wait for every answer
		place.Store(s)
	}
	return s
}

// judge applies the rules of e to the caller.
func (v *View) judge(ctx context.Context, st *state, e *entry) *seen {
	s := &seen{st: st, e: e, readOnly: e.ReadOnly}
	r := &believed
	if !v.origin.local && len(e.rules) > 0 {
		var err error
		r, s.until, err = v.t.clients.match(ctx, e.rules, v.origin.addr)
		if err != nil {
			s.err = err
			return s
		}
		if r == nil || r.keepsOut(v.origin) {
			s.err = vfs.ErrAccess
			return s
		}
		s.readOnly = s.readOnly || r.ReadOnly
	}
	s.rule = r
	who, until, err := v.t.clients.claimed(ctx, r, v.origin.user, v.caller)
	s.again(until)
	if err == nil {
		s.caller, until, err = v.t.clients.identity(ctx, r, who)
		s.again(until)
	}
	if err != nil {
		s.err = err
		return s
	}
	s.fs = e.FS.As(s.caller)
	return s
}

// again has the caller judged again at until at the latest, if that is not zero.
func (s *seen) again(until time.Time) {
	if s.until.IsZero() || !until.IsZero() && until.Before(s.until) {
		s.until = until
	}
}

// securePorts is the first source port that a program without privileges gets.
const securePorts = 1024

// change opens a sealed handle for an operation that changes something.
func (v *View) change(ctx context.Context, sealed *vfs.Handle) (ref, error) {
	r, err := v.ref(ctx, sealed)
	if err == nil && r.readOnly {
		r.leave()
		return ref{}, vfs.ErrROFS
	}
	return r, err
}

// pair opens two handles, which must both lie in one export, to change both.
// The caller leaves the first.
func (v *View) pair(ctx context.Context, a, b *vfs.Handle) (ref, vfs.Handle, error) {
	r, err := v.change(ctx, a)
	if err != nil {
		return ref{}, vfs.Handle{}, err
	}
	h, err := r.second(ctx, b)
	if err != nil {
		r.leave()
		return ref{}, vfs.Handle{}, err
	}
	return r, h, nil
}

// second opens a further handle by the same state as the first.
func (r *ref) second(ctx context.Context, sealed *vfs.Handle) (vfs.Handle, error) {
	e, h, err := r.st.open(sealed)
	if err != nil || e == r.e {
		return h, err
	}
	s := r.v.see(ctx, r.st, e)
	switch {
	case s.err != nil:
		return h, s.err
	case s.readOnly:
		return h, vfs.ErrROFS
	}
	return h, vfs.ErrXDev
}

// seal makes the handle that clients hold of an object in the same export.
func (r *ref) seal(h *vfs.Handle) (vfs.Handle, error) { return r.e.seal(h) }

// stable makes the changes of the objects hs stable, if the file system leaves
// that to its caller and the export is not async. Its error is the operation's:
// what is not on the disk has not been done as far as the client may believe.
func (r *ref) stable(ctx context.Context, hs ...vfs.Handle) error {
	if r.e.Async || r.v.hasty {
		return nil
	}
	s, ok := vfs.As[vfs.Syncer](r.fs)
	if !ok {
		return nil
	}
	for _, h := range hs {
		if h.IsZero() {
			continue
		}
		if err := s.Sync(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// Owns reports whether uid, the owner of an object in the export of h, is the
// caller: the user that the rules make of it, not the one that it says it is.
func (v *View) Owns(ctx context.Context, h vfs.Handle, uid uint32) bool {
	r, err := v.ref(ctx, &h)
	if err != nil {
		return false
	}
	defer r.leave()
	return r.caller != nil && r.caller.UID == uid
}

// User is the user that the rules of the export of h make of the caller; ok is false if
// it may not use that export, or is the process itself.
func (v *View) User(ctx context.Context, h vfs.Handle) (uid uint32, ok bool) {
	r, err := v.ref(ctx, &h)
	if err != nil {
		return 0, false
	}
	defer r.leave()
	if r.caller == nil {
		return 0, false
	}
	return r.caller.UID, true
}
