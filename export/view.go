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
// [vfs.Xattrer], [vfs.Putter], [vfs.HostOpener] and [vfs.Walker], as far as the file systems have them
// ([View.Holds]), and that of a [vfs.Watcher].
//
// Every call is judged by the exports and rules that are in force when it begins. The
// view remembers what the rules make of its caller until the next Replace, or until a
// name has to be looked up again.
type View struct {
	t        *Table
	caller   *vfs.Caller
	origin   origin
	shard    uint32 // of users
	unstable bool   // changes are answered before they are stable
	// seen is a cache of the exports that were used, each at its index modulo
	// seenExports. Most callers use one or two. Exports that share a place displace
	// one another, and are then judged again.
	seen [seenExports]atomic.Pointer[seen]
}

// seenExports is how many exports a view remembers.
const seenExports = 16

// Origin is where calls come from: a connection.
type Origin struct {
	// Remote is the client's address and port; invalid: a connection without one.
	Remote netip.AddrPort
	// User is the user of a program on this host, as the kernel says. The program is
	// this user, with all its groups on this host, whatever its credential says.
	// Where the rule says TrustLocal, or if the user is root, the credential is
	// believed. [Anonymous]: the kernel could not tell, and the program is
	// anonymous. nil: the credential is believed.
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

// seen is what the rules of an export make of a caller.
type seen struct {
	st       *state
	e        *entry
	fs       vfs.FS
	rule     *rule       // that matches
	caller   *vfs.Caller // squashed
	readOnly bool
	err      error     // why the caller may not use it; nil: it may
	why      Reason    // of err, if rules have refused it; else 0
	until    time.Time // judge again; zero: never
}

// As returns the view that c has of all exports. If c is nil, or c.Client is empty, it
// is the program's own, and no rule concerns it. If c.Client is an address, the rules
// of that address hold; its port is unknown, which rules that are Secure refuse. Any
// other c.Client is a client without an address.
//
// Renames and links between exports are vfs.ErrXDev. Root is that of the export
// that Mount finds under "/".
func (t *Table) As(c *vfs.Caller) vfs.FS {
	if c == nil || c.Client == "" {
		return t.view(origin{local: true}, c)
	}
	// If it is no address, ParseAddr returns the zero Addr, which stands for none.
	addr, _ := netip.ParseAddr(c.Client)
	return t.view(origin{addr: plain(addr)}, c)
}

// For returns the view that c has of all exports from the address and port of a
// connection. An invalid remote is a connection without an address, such as one over
// a Unix socket. If c is nil, calls have the file systems' own identity: rules decide
// whether the client may use an export and change it, and squash nothing.
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

// Unstable returns a view of the same caller from the same place that answers changes
// of names and attributes before they are stable. Bytes are as stable as they are asked
// to be. It is for a sequence of steps of which only the result is promised, such as to
// create a file under a temporary name, write it and rename it. The caller makes the
// last step, and Commit, through v.
func (v *View) Unstable() *View {
	u := v.t.view(v.origin, v.caller)
	u.unstable = true
	return u
}

// ref is an opened handle: the export as the caller sees it, and the object in it. It
// counts as a use of the export's file system until leave.
type ref struct {
	*seen
	v *View
	h vfs.Handle
}

// maxReloads bounds how often a call starts again because the exports have just been
// replaced. At the bound the call is vfs.ErrBusy.
const maxReloads = 16

// ref opens a sealed handle. If err is nil, the caller must call leave.
func (v *View) ref(ctx context.Context, sealed *vfs.Handle) (ref, error) {
	for range maxReloads {
		st := v.t.state.Load()
		e, h, err := st.open(sealed)
		if err != nil {
			return ref{}, err
		}
		s, ok, err := v.enter(ctx, st, e)
		if err != nil {
			v.refuse(s, s.why, "")
			return ref{}, err
		}
		if ok {
			return ref{seen: s, v: v, h: h}, nil
		}
	}
	return ref{}, vfs.ErrBusy
}

// enter judges the caller and counts a user of the export's file system. ok is false if
// st is no longer in force. s is what was found, also with an error.
func (v *View) enter(ctx context.Context, st *state, e *entry) (s *seen, ok bool, err error) {
	s = v.see(ctx, st, e)
	if s.err != nil {
		return s, false, s.err
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

// see returns what the rules of e make of the caller.
func (v *View) see(ctx context.Context, st *state, e *entry) *seen {
	// Every reload makes new entries: what was remembered before is of another one.
	place := &v.seen[e.index%seenExports]
	if s := place.Load(); s != nil && s.e == e && (s.until.IsZero() || v.t.now().Before(s.until)) {
		return s
	}
	s := v.judge(ctx, st, e)
	if ctx.Err() == nil { // else judge may not have waited for every answer
		place.Store(s)
	}
	return s
}

// judge applies the rules of e to the caller. It waits for names and groups no longer
// than lookupWait in all.
func (v *View) judge(ctx context.Context, st *state, e *entry) *seen {
	if haveNames(e.rules) { // else only groups are looked up, within the same time
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lookupWait)
		defer cancel()
	}
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
			if s.err, s.why, s.rule = vfs.ErrAccess, NoRule, r; r != nil {
				s.why = InsecurePort
			}
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

// again has the caller judged again no later than until, if that is not zero.
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
		return ref{}, v.rofs(r.seen)
	}
	return r, err
}

// pair opens two handles of one export, to change both. The caller calls leave of the
// first.
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
		r.v.refuse(s, s.why, "")
		return h, s.err
	case s.readOnly:
		return h, r.v.rofs(s)
	}
	return h, vfs.ErrXDev
}

// seal makes the handle that clients hold of an object in the same export.
func (r *ref) seal(h *vfs.Handle) (vfs.Handle, error) { return r.e.seal(h) }

// stable makes the changes of the objects hs stable, if the file system leaves
// that to its caller and the export is not async. Its error is the operation's error:
// a change that is not on the disk must not be reported as done.
// They are made stable one after the other, in the order given: it decides what a
// crash in between leaves (docs/decisions/0010-the-object-before-its-name.md).
func (r *ref) stable(ctx context.Context, hs ...vfs.Handle) error {
	if r.e.Async || r.v.unstable {
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

// Owns reports whether uid is the caller, as the rules of the export of h make it, and
// not as its credential says.
func (v *View) Owns(ctx context.Context, h vfs.Handle, uid uint32) bool {
	r, err := v.ref(ctx, &h)
	if err != nil {
		return false
	}
	defer r.leave()
	return r.caller != nil && r.caller.UID == uid
}

// User returns the user that the rules of the export of h make of the caller. ok is
// false if the caller may not use that export, or is the program itself.
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
