package oncrpc

import (
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// shareBits is how much of an IPv6 address tells clients apart where something is
// divided among them: a host is given a network of 64 bits and takes from it as many
// addresses as it likes (RFC 4941).
const shareBits = 64

// MaxClientName is how long a name of [ClientOf] may be. What is longer is cut.
const MaxClientName = 255

// UnknownUser is the UID of a [UserAddr] whose user nobody can tell. No user has it.
const UnknownUser = math.MaxUint32

// UserAddr is the address of a program on the server's own host, whose user is known
// from elsewhere than its credential: see [ServerOptions].Peer. All users of a host
// share its addresses, so each is a client of its own, and those that nobody can tell
// are one together.
type UserAddr struct {
	net.Addr
	UID uint32 // or UnknownUser
}

const (
	userMark    = "@" // stands between the user and the address
	unknownMark = "?" // stands for UnknownUser
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

// AddrPort is the address and port; of what has none, the zero AddrPort.
func (a *UserAddr) AddrPort() netip.AddrPort {
	if p, ok := a.Addr.(interface{ AddrPort() netip.AddrPort }); ok {
		return p.AddrPort()
	}
	return netip.AddrPort{}
}

// UserOf is the User of an [*UserAddr], and "" of every other address.
func UserOf(a net.Addr) string {
	if u, ok := a.(*UserAddr); ok {
		return u.User()
	}
	return ""
}

// ShareOf names the client at a where something is divided among clients: by its
// address without the port, or of IPv6 the first 64 bits. Of a [*UserAddr] it is the
// user alone, which has all addresses of loopback.
func ShareOf(a net.Addr) string {
	if u, ok := a.(*UserAddr); ok {
		return u.User() + userMark
	}
	addr := addrOf(a)
	if !addr.Is6() {
		return ClientOf(a)
	}
	// A network of a valid address and length is never an error.
	p, _ := addr.WithZone("").Prefix(shareBits)
	return p.String()
}

// ShareOfClient is [ShareOf] the client that [ClientOf] names so.
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

// ClientOf names the client at a: by its address without the port, so that it is the
// same client when it connects again, and by its user if that is known. The name has at
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

// addrOf is the address of a without the port; of what has none, the zero Addr.
func addrOf(a net.Addr) netip.Addr {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.AddrPort().Addr().Unmap()
	case *net.UDPAddr:
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
