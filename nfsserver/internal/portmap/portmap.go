package portmap

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/rpcbind"
	"github.com/nfsbox/nfsbox/xdr"
)

// owner is whom version 3 and 4 name as the owner of every entry.
const owner = "nfsbox"

// Service knows the programs of one server.
type Service struct {
	programs []*xdr.Program
}

// New returns the service for a server of these programs and of its own.
func New(programs ...*xdr.Program) *Service {
	return &Service{programs: append(programs, &rpcbind.PMAPVERS, &rpcbind.RPCBVERS, &rpcbind.RPCBVERS4)}
}

// RPC binds the procedures of all three versions to their numbers.
func (s *Service) RPC() []oncrpc.Service {
	v2 := make([]oncrpc.Handler, len(rpcbind.PMAPVERS.Procs))
	v2[rpcbind.PMAPPROC_NULL.Number] = null
	v2[rpcbind.PMAPPROC_SET.Number] = refuse[rpcbind.Mapping]
	v2[rpcbind.PMAPPROC_UNSET.Number] = refuse[rpcbind.Mapping]
	v2[rpcbind.PMAPPROC_GETPORT.Number] = s.getport
	v2[rpcbind.PMAPPROC_DUMP.Number] = s.dump

	v3 := make([]oncrpc.Handler, len(rpcbind.RPCBVERS.Procs))
	v3[rpcbind.RPCBVERS_RPCBPROC_NULL.Number] = null
	v3[rpcbind.RPCBVERS_RPCBPROC_SET.Number] = refuse[rpcbind.Rpcb]
	v3[rpcbind.RPCBVERS_RPCBPROC_UNSET.Number] = refuse[rpcbind.Rpcb]
	v3[rpcbind.RPCBVERS_RPCBPROC_GETADDR.Number] = s.getaddr
	v3[rpcbind.RPCBVERS_RPCBPROC_DUMP.Number] = s.dumpAddrs

	v4 := make([]oncrpc.Handler, len(rpcbind.RPCBVERS4.Procs))
	copy(v4, v3[:rpcbind.RPCBVERS4_RPCBPROC_DUMP.Number+1])
	v4[rpcbind.RPCBPROC_GETVERSADDR.Number] = s.getversaddr

	return []oncrpc.Service{
		{Program: &rpcbind.PMAPVERS, Handlers: v2},
		{Program: &rpcbind.RPCBVERS, Handlers: v3},
		{Program: &rpcbind.RPCBVERS4, Handlers: v4},
	}
}

func null(_ context.Context, c *oncrpc.Call) error { return c.Reply(xdr.Void{}) }

// decoded is a pointer to arguments.
type decoded[A any] interface {
	*A
	xdr.Unmarshaler
}

func args[A any, PA decoded[A]](c *oncrpc.Call, a PA) error {
	if err := a.DecodeXDR(&c.Args); err != nil {
		return err
	}
	return c.Args.Finish()
}

// refuse is SET and UNSET: nobody registers anything here.
func refuse[A any, PA decoded[A]](_ context.Context, c *oncrpc.Call) error {
	var a A
	if err := args[A, PA](c, &a); err != nil {
		return err
	}
	return c.Reply(&rpcbind.PMAPPROC_SETres{Value: false})
}

// serves reports whether the server has the program, in any version or in that
// one. As other port mappers do, we lead a client whose version is missing to
// the program itself, which says which versions it has.
func (s *Service) serves(prog uint32) bool {
	return slices.ContainsFunc(s.programs, func(p *xdr.Program) bool { return p.Number == prog })
}

func (s *Service) servesVersion(prog, vers uint32) bool {
	return slices.ContainsFunc(s.programs, func(p *xdr.Program) bool { return p.Number == prog && p.Version == vers })
}

// getport is procedure 3 of version 2.
func (s *Service) getport(_ context.Context, c *oncrpc.Call) error {
	var a rpcbind.Mapping
	if err := args(c, &a); err != nil {
		return err
	}
	var res rpcbind.PMAPPROC_GETPORTres
	if l := local(c); l != nil && a.Prot == rpcbind.IPPROTO_TCP && s.serves(a.Prog) {
		res.Value = uint32(l.Port)
	}
	return c.Reply(&res)
}

// dump is procedure 4 of version 2.
func (s *Service) dump(_ context.Context, c *oncrpc.Call) error {
	if err := c.Args.Finish(); err != nil {
		return err
	}
	var list rpcbind.Pmaplist
	if l := local(c); l != nil {
		for _, p := range s.programs {
			list = append(list, rpcbind.PmaplistNode{Map: rpcbind.Mapping{
				Prog: p.Number, Vers: p.Version, Prot: rpcbind.IPPROTO_TCP, Port: uint32(l.Port),
			}})
		}
	}
	return c.Reply(&list)
}

// getaddr is procedure 3 of versions 3 and 4.
func (s *Service) getaddr(_ context.Context, c *oncrpc.Call) error {
	return s.address(c, func(a *rpcbind.Rpcb) bool { return s.serves(a.RProg) })
}

// getversaddr is procedure 9 of version 4: getaddr for this version only.
func (s *Service) getversaddr(_ context.Context, c *oncrpc.Call) error {
	return s.address(c, func(a *rpcbind.Rpcb) bool { return s.servesVersion(a.RProg, a.RVers) })
}

func (s *Service) address(c *oncrpc.Call, have func(*rpcbind.Rpcb) bool) error {
	var a rpcbind.Rpcb
	if err := args(c, &a); err != nil {
		return err
	}
	var res rpcbind.RPCBVERS_RPCBPROC_GETADDRres
	netid, addr := universal(local(c))
	if asked := string(a.RNetid); (asked == "" || asked == netid) && have(&a) {
		res.Value = []byte(addr)
	}
	return c.Reply(&res)
}

// dumpAddrs is procedure 4 of versions 3 and 4.
func (s *Service) dumpAddrs(_ context.Context, c *oncrpc.Call) error {
	if err := c.Args.Finish(); err != nil {
		return err
	}
	var list rpcbind.RpcblistPtr
	if netid, addr := universal(local(c)); addr != "" {
		for _, p := range s.programs {
			list = append(list, rpcbind.RpList{RpcbMap: rpcbind.Rpcb{
				RProg: p.Number, RVers: p.Version, RNetid: []byte(netid), RAddr: []byte(addr), ROwner: []byte(owner),
			}})
		}
	}
	return c.Reply(&list)
}

// local is the address at which the client has reached the server, or nil if
// the connection has none.
func local(c *oncrpc.Call) *net.TCPAddr {
	a, _ := c.Local.(*net.TCPAddr)
	return a
}

// universal is an address as RFC 5665 writes it, section 5.2.3: the IP address,
// and the port's two bytes in decimal. netid says which kind of address it is.
func universal(a *net.TCPAddr) (netid, addr string) {
	if a == nil {
		return "", ""
	}
	netid, ip := "tcp6", a.IP
	if v4 := ip.To4(); v4 != nil {
		netid, ip = "tcp", v4
	}
	return netid, strings.Join([]string{ip.String(), strconv.Itoa(a.Port >> 8), strconv.Itoa(a.Port & 0xff)}, ".")
}
