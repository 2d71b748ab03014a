package oncrpc

import (
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// shareBits is how many bits of an IPv6 address tell clients apart where something is
// divided among them. A host has a network of 64 bits, and takes as many addresses from it
// as it likes (RFC 4941).
const shareBits = 64

// MaxClientName bounds a name of [ClientOf], in bytes. A longer one is cut.
const MaxClientName = 255

// UnknownUser is the UID of a [UserAddr] whose user is unknown. No user has it.
const UnknownUser = math.MaxUint32

// UserAddr is the address of a program on the server's own host, with its user. No credential
// says that user: see [ServerOptions].Peer. The users of a host share its
// addresses. Therefore each is a client of its own. All unknown users are one client.
type UserAddr struct {
	net.Addr
	UID uint32 // or UnknownUser
}

const (
	userMark    = "@" // between the user and the address
	unknownMark = "?" // instead of UnknownUser
)

// User is the user as String has it: a number, or "?" for [UnknownUser].
func (a *UserAddr) User() string {
	if a.UID == UnknownUser {
		return unknownMark
	}
	return strconv.FormatUint(uint64(a.UID), 10)
}

// String is the address with its user in front: "1000@127.0.0.1:700".
func (a *UserAddr) String() string { return a.User() + userMark + a.Addr.String() }

// AddrPort is the address and port; the zero AddrPort if Addr has none.
func (a *UserAddr) AddrPort() netip.AddrPort {
	if p, ok := a.Addr.(interface{ AddrPort() netip.AddrPort }); ok {
		return p.AddrPort()
	}
	return netip.AddrPort{}
}

// UserOf is the User of a [*UserAddr], and "" of any other address.
func UserOf(a net.Addr) string {
	if u, ok := a.(*UserAddr); ok {
		return u.User()
	}
	return ""
}

// ShareOf names the client at a where something is divided among clients: its address
// without the port, or of IPv6 the first 64 bits. Of a [*UserAddr] it is the user alone,
// since a user can have any address of loopback.
func ShareOf(a net.Addr) string {
	if u, ok := a.(*UserAddr); ok {
		return u.User() + userMark
	}
	addr := addrOf(a)
	if !addr.Is6() {
		return ClientOf(a)
	}
	// It fails for invalid lengths alone.
	p, _ := addr.WithZone("").Prefix(shareBits)
	return p.String()
}

// ShareOfClient is [ShareOf] for the client that has this name of [ClientOf].
func ShareOfClient(name string) string {
	if user, addr, ok := strings.Cut(name, userMark); ok && isUser(user) && isAddr(addr) {
		return user + userMark
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return ShareOf(net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, 0)))
	}
	return name
}

func isUser(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil || s == unknownMark
}

func isAddr(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

// ClientOf names the client at a: its address, with its user if a is a [*UserAddr], and
// without the port, so that it is the same client when it connects again. The name has at
// most [MaxClientName] bytes.
func ClientOf(a net.Addr) string {
	switch a := a.(type) {
	case nil:
		return ""
	case *UserAddr:
		name := a.User() + userMark + ClientOf(a.Addr)
		return name[:min(len(name), MaxClientName)]
	case *net.TCPAddr:
		return a.AddrPort().Addr().Unmap().String()
	case *net.UDPAddr:
		return a.AddrPort().Addr().Unmap().String()
	}
	s := a.String()
	if host, _, err := net.SplitHostPort(s); err == nil {
		s = host
	}
	return s[:min(len(s), MaxClientName)]
}

// addrOf is the address of a without the port; the zero Addr if it has none.
func addrOf(a net.Addr) netip.Addr {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.AddrPort().Addr().Unmap()
	case *net.UDPAddr:
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
