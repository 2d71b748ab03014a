package oncrpc

import (
	"net"
	"net/netip"
)

// shareBits is how much of an IPv6 address tells clients apart where something is
// divided among them: a host is given a network of 64 bits and takes from it as many
// addresses as it likes (RFC 4941).
const shareBits = 64

// ShareOf names the client at a where something is divided among clients: by its
// address without the port, or of IPv6 the first 64 bits.
func ShareOf(a net.Addr) string {
	addr := addrOf(a)
	if !addr.Is6() {
		return clientName(a)
	}
	// A network of a valid address and length is never an error.
	p, _ := addr.WithZone("").Prefix(shareBits)
	return p.String()
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
