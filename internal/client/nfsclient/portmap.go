package nfsclient

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/rpcbind"
	"github.com/nfsbox/nfsbox/xdr"
)

// errNotRegistered says that the portmapper does not know a service.
var errNotRegistered = errors.New("the server's portmapper does not know it")

// portmapper asks a server for the ports of its services (RFC 1833).
type portmapper struct {
	rpc    *oncrpc.Client
	remote net.Addr // the server
}

// port finds the TCP port of a program: by version 2 of the protocol, which all servers have. For
// a server that was reached over IPv6, which version 2 lacks, it asks by versions 4 and 3.
func (p *portmapper) port(ctx context.Context, prog *xdr.Program) (uint16, error) {
	port, err := p.getport(ctx, prog)
	if err == nil && port != 0 {
		return port, nil
	}
	if !p.overIPv6() {
		if err == nil {
			err = errNotRegistered
		}
		return 0, err
	}
	for _, proc := range []*xdr.Proc{rpcbind.RPCBVERS4_RPCBPROC_GETADDR, rpcbind.RPCBVERS_RPCBPROC_GETADDR} {
		port, err = p.getaddr(ctx, proc, prog)
		if _, otherVersion := errors.AsType[*oncrpc.AcceptError](err); !otherVersion {
			break
		}
	}
	return port, err
}

// overIPv6 reports whether the server was reached at an IPv6 address. An IPv4-mapped address is
// none.
func (p *portmapper) overIPv6() bool {
	at, err := netip.ParseAddrPort(p.remote.String())
	return err == nil && at.Addr().Is6() && !at.Addr().Is4In6()
}

// getport is PMAPPROC_GETPORT; 0 is a service that is not registered.
func (p *portmapper) getport(ctx context.Context, prog *xdr.Program) (uint16, error) {
	args := rpcbind.Mapping{Prog: prog.Number, Vers: prog.Version, Prot: rpcbind.IPPROTO_TCP}
	var res rpcbind.PMAPPROC_GETPORTres
	reply, err := p.rpc.Call(ctx, rpcbind.PMAPPROC_GETPORT, oncrpc.Auth{}, &args, &res)
	defer reply.Release()
	if err != nil {
		return 0, err
	}
	if res.Value > math.MaxUint16 {
		return 0, fmt.Errorf("the portmapper answers port %d, which there is not", res.Value)
	}
	return uint16(res.Value), nil
}

// getaddr is RPCBPROC_GETADDR of version 3 or 4.
func (p *portmapper) getaddr(ctx context.Context, proc *xdr.Proc, prog *xdr.Program) (uint16, error) {
	args := rpcbind.Rpcb{RProg: prog.Number, RVers: prog.Version, RNetid: []byte("tcp6")}
	var res rpcbind.RPCBVERS4_RPCBPROC_GETADDRres // as in version 3
	reply, err := p.rpc.Call(ctx, proc, oncrpc.Auth{}, &args, &res)
	defer reply.Release()
	if err != nil {
		return 0, err
	}
	if len(res.Value) == 0 {
		return 0, errNotRegistered
	}
	return universalPort(string(res.Value[:min(len(res.Value), maxUniversal)]))
}

// maxUniversal bounds a universal address, in bytes; RFC 5665 needs fewer. A longer one is cut,
// and so is no valid address.
const maxUniversal = 128

// universalPort is the port in a universal address: its last two numbers are the port's two bytes
// (RFC 5665, section 5.2.3).
func universalPort(addr string) (uint16, error) {
	host, low, ok1 := cutLast(addr)
	_, high, ok2 := cutLast(host)
	h, err1 := strconv.ParseUint(high, 10, 8)
	l, err2 := strconv.ParseUint(low, 10, 8)
	if port := uint16(h<<8 | l); ok1 && ok2 && err1 == nil && err2 == nil && port != 0 {
		return port, nil
	}
	return 0, fmt.Errorf("the portmapper answers %q, which is no address", addr)
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
