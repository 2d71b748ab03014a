package portmap

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/rpcbind"
	"github.com/nfsbox/nfsbox/xdr"
)

// maxListeners bounds what Listening remembers. A server has one or two; at the
// bound a further one is ignored.
const maxListeners = 64

// endpoint is a transport, "tcp" or "udp", and where it is served.
type endpoint struct {
	network string
	addr    netip.AddrPort
}

// at is the endpoint of an address; ok is false if it is none of TCP or UDP.
func at(a net.Addr) (e endpoint, ok bool) {
	switch a := a.(type) {
	case *oncrpc.UserAddr:
		return at(a.Addr)
	case *net.TCPAddr:
		e = endpoint{"tcp", a.AddrPort()}
	case *net.UDPAddr:
		e = endpoint{"udp", a.AddrPort()}
	default:
		return e, false
	}
	e.addr = netip.AddrPortFrom(e.addr.Addr().Unmap(), e.addr.Port())
	return e, true
}

// Listening says that the server's programs are served at a. It may be called at
// any time. A listener that serves nothing but this package is not named.
func (s *Service) Listening(a net.Addr) { s.note(&s.listeners, a) }

// Mapping says that the port mapper is served at a, and no other program.
func (s *Service) Mapping(a net.Addr) { s.note(&s.mappers, a) }

func (s *Service) note(all *[]endpoint, a net.Addr) {
	e, ok := at(a)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok && len(*all) < maxListeners && !slices.Contains(*all, e) {
		*all = append(*all, e)
	}
}

// over reports whether a program is served over that transport.
func (s *Service) over(p *xdr.Program, network string) bool {
	return network == "tcp" || slices.Contains(s.udp, p)
}

// port is the port of a program over a transport, for a client that has asked at local; 0:
// there is none. For the port mapper itself, an endpoint of Mapping is preferred.
func (s *Service) port(local endpoint, network string, program uint32) uint16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if program == rpcbind.RPCBPROG {
		if p := nearest(s.mappers, local, network); p != 0 {
			return p
		}
	}
	best := nearest(s.listeners, local, network)
	if best == 0 && len(s.listeners) == 0 && local.network == network {
		return local.addr.Port() // none was named: all programs are on one port
	}
	return best
}

// nearest is the port among all that suits a client best that has asked at local; 0: none
// is of that transport.
func nearest(all []endpoint, local endpoint, network string) uint16 {
	best, found := uint16(0), 0
	for _, l := range all {
		rank := 0
		switch {
		case l.network != network:
			continue
		case l.addr.Port() == local.addr.Port() && local.network == network:
			rank = 3
		case l.addr.Addr() == local.addr.Addr() || l.addr.Addr().IsUnspecified() || local.addr.Addr().IsUnspecified():
			rank = 2
		default:
			continue // it is not at the address that the client has reached
		}
		if rank > found {
			best, found = l.addr.Port(), rank
		}
	}
	return best
}

// networks are the transports, by their names and by the numbers of version 2.
var networks = [...]struct {
	name   string
	number uint32
}{{"tcp", rpcbind.IPPROTO_TCP}, {"udp", rpcbind.IPPROTO_UDP}}

// local is the endpoint at which the client has reached the server. A datagram socket does
// not know the address: then it is the unspecified one of the client's family.
func local(c *oncrpc.Call) (endpoint, bool) {
	l, ok := at(c.Local)
	if remote, known := at(c.Remote); ok && known && l.addr.Addr().IsUnspecified() && remote.addr.Addr().Is4() {
		l.addr = netip.AddrPortFrom(netip.IPv4Unspecified(), l.addr.Port())
	}
	return l, ok
}

// universal is an address as RFC 5665 writes it, section 5.2.3: the IP address,
// and the port's two bytes in decimal. netid says which kind of address it is.
func universal(network string, ip netip.Addr, port uint16) (netid, addr string) {
	netid = network
	if !ip.Is4() {
		netid += "6"
	}
	return netid, strings.Join([]string{ip.WithZone("").String(), strconv.Itoa(int(port >> 8)), strconv.Itoa(int(port & 0xff))}, ".")
}
