// Package peer identifies the callers of a connection: it turns the credentials of
// its calls into views of the exports, and caches them.
package peer

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
)

// maxViews bounds the identities that one connection remembers: a client with that many
// users at once is rare. At the bound a new one displaces any other, which is made anew
// when it calls.
const maxViews = 256

// View is what one caller sees of the exports. Caller is what its credential says; the
// rules of each export, which FS applies, decide who it is there.
type View struct {
	FS     *export.View
	Caller *vfs.Caller
	cred   string // the credential, without its stamp; "": AUTH_NONE
}

// Conn is what the server keeps of one connection. All methods may be called
// concurrently.
type Conn struct {
	// Client is the address of the client, without the port.
	Client string
	// User is the user of this host that the client is, as oncrpc.UserOf has it.
	User string
	// Name is both, as logs have it: USER@ADDRESS, or the address alone.
	Name string
	// Share names the client where something is divided among clients, as
	// oncrpc.ShareOf has it.
	Share  string
	origin export.Origin
	table  *export.Table
	gate   *export.Gate

	// last is the view used last: nearly every call comes from the same user as
	// the one before it, and takes no lock.
	last atomic.Pointer[View]
	none atomic.Pointer[View]

	mu    sync.Mutex
	views map[string]*View // guarded by mu; by credential without its stamp
}

// NewConn starts with what is known of a connection from remote, which may be an
// [*oncrpc.UserAddr].
func NewConn(table *export.Table, remote net.Addr) *Conn {
	share, name := oncrpc.ShareOf(remote), oncrpc.UserOf(remote)
	var user *uint32
	if of, ok := remote.(*oncrpc.UserAddr); ok {
		uid := of.UID
		if uid == oncrpc.UnknownUser {
			uid = export.Anonymous
		}
		remote, user = of.Addr, &uid
	}
	at := addrPort(remote)
	full := host(remote)
	if name != "" {
		full = name + "@" + full
	}
	return &Conn{
		Client: host(remote), User: name, Name: full, Share: share, table: table, gate: table.Gate(at),
		origin: export.Origin{Remote: at, User: user},
	}
}

// Within reports whether both ends of a connection may lie on this host: the far
// end has an address of loopback, or the one of the near end.
func Within(remote, local net.Addr) bool {
	r, l := addrPort(remote).Addr().Unmap(), addrPort(local).Addr().Unmap()
	return r.IsValid() && (r.IsLoopback() || r == l)
}

// Admitted reports whether any rule of any export admits the client, as far as that
// is known now. Nothing may be kept for a client that no rule admits.
func (c *Conn) Admitted() bool { return c.gate.Admits() }

// Known reports whether any export has a rule for the client's address; other clients
// must not be told what is here. It waits for names. If they cannot be looked up, the
// error is [oncrpc.ErrDrop], so that the client asks again.
func (c *Conn) Known(ctx context.Context) (bool, error) {
	known, err := c.gate.Knows(ctx)
	if err != nil {
		return false, oncrpc.ErrDrop
	}
	return known, nil
}

// addrPort is the address and port by which exports know a client.
func addrPort(a net.Addr) netip.AddrPort {
	if a, ok := a.(interface{ AddrPort() netip.AddrPort }); ok {
		return a.AddrPort()
	}
	return netip.AddrPort{}
}

// host is an address without its port, since a client stays the same when it connects
// again.
func host(a net.Addr) string {
	if a == nil {
		return ""
	}
	s := a.String()
	if h, _, err := net.SplitHostPort(s); err == nil {
		return h
	}
	return s
}

// stampSize is the size of authsys_parms.stamp, the credential's first field. It
// says nothing about the caller, and clients exist that change it in each call.
const stampSize = 4

// View returns the view of a credential. AUTH_SYS is believed; AUTH_NONE is
// [export.Anonymous]. A malformed credential, or another flavor, is an
// [*oncrpc.AuthError].
func (c *Conn) View(a oncrpc.Auth) (*View, error) {
	switch a.Flavor {
	case oncrpc.AuthNone:
		return c.anonymous(), nil
	case oncrpc.AuthSysFlavor:
		if len(a.Body) < stampSize {
			return nil, &oncrpc.AuthError{Stat: oncrpc.AuthBadCred}
		}
		if v := c.last.Load(); v != nil && v.cred == string(a.Body[stampSize:]) {
			return v, nil
		}
		return c.find(a.Body)
	case oncrpc.AuthShort:
		// AUTH_SHORT: this server hands none out, so it is another server's. The
		// client has to send the full credential (RFC 5531, section 9).
		return nil, &oncrpc.AuthError{Stat: oncrpc.AuthRejectedCred}
	}
	return nil, &oncrpc.AuthError{Stat: oncrpc.AuthTooWeak}
}

func (c *Conn) anonymous() *View {
	if v := c.none.Load(); v != nil {
		return v
	}
	v := c.view(&vfs.Caller{UID: export.Anonymous, GID: export.Anonymous, Client: c.Client}, "")
	c.none.Store(v)
	return v
}

// find returns the view of an AUTH_SYS credential, making it if it is new.
func (c *Conn) find(body []byte) (*View, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.views[string(body[stampSize:])]; v != nil {
		c.last.Store(v)
		return v, nil
	}
	cred, err := oncrpc.ParseAuthSys(body)
	if err != nil {
		// The reason is not sent: AUTH_BADCRED says enough.
		return nil, &oncrpc.AuthError{Stat: oncrpc.AuthBadCred}
	}
	caller := &vfs.Caller{UID: cred.UID, GID: cred.GID, Groups: cred.GIDs, Client: c.Client}
	v := c.view(caller, string(body[stampSize:]))
	if c.views == nil {
		c.views = make(map[string]*View)
	}
	for other := range c.views {
		if len(c.views) < maxViews {
			break
		}
		delete(c.views, other)
	}
	c.views[v.cred] = v
	c.last.Store(v)
	return v, nil
}

func (c *Conn) view(caller *vfs.Caller, cred string) *View {
	return &View{FS: c.table.From(c.origin, caller), Caller: caller, cred: cred}
}
