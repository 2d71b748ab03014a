package nfsserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
)

// ClientInfo describes a client: an address, or a known user of this host there. It does
// not count what the client did on connections that are closed.
type ClientInfo struct {
	Client   string   // its address, without port: what Drop takes; "local": none over IP; a user: "1000@127.0.0.1"
	Names    []string // as it calls itself where it locks
	Conns    int
	UnderWay int       // calls read, and not yet answered
	Calls    uint64    // on the connections that are open
	BytesIn  uint64    // read from the client on them
	BytesOut uint64    // written to it on them
	Locks    int       // ranges locked by NLM
	Waits    int       // locks that it waits for
	Shares   int       // share reservations
	Files    int       // open files that LOCALIO has handed to it
	Since    time.Time // when its oldest connection was opened; zero: it has none
	Active   time.Time // when it last sent something, or was answered
}

// LockInfo is a range of a file that a client has locked, or waits for.
type LockInfo struct {
	Client    string     // as in ClientInfo
	Name      string     // as the client calls itself
	Process   int32      // a number that the client gives its process
	File      vfs.Handle // as clients have it
	Off, Len  uint64     // in bytes; Len 0: to the end of the file
	Exclusive bool
	Waits     bool
}

// ErrNoClient says that nothing is known of a client.
var ErrNoClient = errors.New("nfsserver: no such client")

// noAddress is the name of clients without an IP address.
const noAddress = "local"

// Clients returns all clients that have a connection, locks or files, ordered by
// address.
func (s *Server) Clients() []ClientInfo {
	all := make(map[string]*ClientInfo)
	of := func(name string, active time.Time) *ClientInfo {
		c := all[name]
		if c == nil {
			c = &ClientInfo{Client: name}
			all[name] = c
		}
		if active.After(c.Active) {
			c.Active = active
		}
		return c
	}
	for _, conn := range append(s.rpc.Conns(), s.maps[0].Conns()...) {
		c := of(clientAt(conn.Remote), conn.Active)
		c.Conns++
		c.UnderWay += conn.UnderWay
		c.Calls += conn.Calls
		c.BytesIn += conn.BytesIn
		c.BytesOut += conn.BytesOut
		if c.Since.IsZero() || conn.Opened.Before(c.Since) {
			c.Since = conn.Opened
		}
	}
	if locks := s.lockService(); locks != nil {
		for _, h := range locks.Holders() {
			c := of(nameOf(h.Addr, h.User), h.Seen)
			c.Names = append(c.Names, h.Name)
			c.Locks, c.Waits, c.Shares = c.Locks+h.Locks, c.Waits+h.Waits, c.Shares+h.Shares
		}
	}
	if s.local != nil {
		for _, l := range s.local.Sessions() {
			of(ofUser(l.User, canonical(l.Client)), time.Time{}).Files += l.Files
		}
	}
	out := make([]ClientInfo, 0, len(all))
	for _, name := range slices.SortedFunc(maps.Keys(all), byAddress) {
		slices.Sort(all[name].Names)
		out = append(out, *all[name])
	}
	return out
}

// Locks returns all locks, also those that wait, ordered by client, file and offset. If
// client is not "", it returns those of that client, or of all users at that address.
func (s *Server) Locks(client string) []LockInfo {
	locks := s.lockService()
	if locks == nil {
		return nil
	}
	client = canonical(client)
	var all []LockInfo
	for _, h := range locks.Held() {
		l := LockInfo{Client: nameOf(h.Addr, h.User), Name: h.Name, Process: h.Process, File: h.File,
			Off: h.Off, Len: h.Len, Exclusive: h.Exclusive, Waits: h.Waits}
		if client == "" || goesBy(l.Client, client) {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b LockInfo) int {
		return cmp.Or(byAddress(a.Client, b.Client), slices.Compare(a.File.Bytes(), b.File.Bytes()),
			cmp.Compare(a.Off, b.Off), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Process, b.Process))
	})
	return all
}

// Drop takes all that a client has here from it. client is its ClientInfo.Client; an
// address stands for all users of this host there, too. Connections are closed, locks
// freed, open files taken back, mounts forgotten. The client is not told that it has lost
// its locks: Drop is for clients that are gone, or must go. A client that is alive comes
// back at once, unless the exports refuse it. Drop returns [ErrNoClient] if there was
// nothing to take.
func (s *Server) Drop(ctx context.Context, client string) error {
	client = canonical(client)
	which := func(at, user string) bool { return goesBy(ofUser(user, canonical(at)), client) }
	far := func(remote net.Addr) bool { return goesBy(clientAt(remote), client) }
	n := s.rpc.Drop(far) + s.maps[0].Drop(far)
	if s.local != nil {
		n += s.local.Drop(which)
	}
	if locks := s.lockService(); locks != nil {
		n += locks.Drop(ctx, func(addr netip.Addr, user string) bool { return goesBy(nameOf(addr, user), client) })
	}
	n += s.mounts.Forget(which)
	if n == 0 {
		return fmt.Errorf("%w: %.64q", ErrNoClient, client)
	}
	return nil
}

// ClientOf returns the client at the far end of a connection, as ClientInfo.Client has it.
func ClientOf(remote net.Addr) string { return clientAt(remote) }

// clientAt names the client at the far end of a connection.
func clientAt(a net.Addr) string {
	if at, ok := a.(interface{ AddrPort() netip.AddrPort }); ok {
		return nameOf(at.AddrPort().Addr(), oncrpc.UserOf(a))
	}
	return noAddress
}

// nameOf names the client at an address whose user is user, as oncrpc.UserOf has it.
func nameOf(a netip.Addr, user string) string {
	if !a.IsValid() {
		return ofUser(user, noAddress)
	}
	return ofUser(user, a.Unmap().String())
}

// userMark stands between a user and its address.
const userMark = "@"

// ofUser names a user at an address; "" is no known user.
func ofUser(user, at string) string {
	if user == "" {
		return at
	}
	return user + userMark + at
}

// goesBy reports whether name names the client: it is its own name, or its address alone.
func goesBy(client, name string) bool {
	_, at, known := strings.Cut(client, userMark)
	return client == name || known && at == name
}

// canonical returns the name as nameOf writes it. A name without an address stays as it is.
func canonical(name string) string {
	user, at, known := strings.Cut(name, userMark)
	if !known {
		user, at = "", name
	}
	if a, err := netip.ParseAddr(at); err == nil {
		return nameOf(a, user)
	}
	return name
}

// byAddress orders names of clients by their addresses.
func byAddress(a, b string) int {
	x, _ := netip.ParseAddr(a[strings.Index(a, userMark)+1:])
	y, _ := netip.ParseAddr(b[strings.Index(b, userMark)+1:])
	return cmp.Or(x.Compare(y), cmp.Compare(a, b))
}
