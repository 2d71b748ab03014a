package portmap

import (
	"context"
	"slices"
	"sync"

	"github.com/nfsbox/nfsbox/nfsserver/internal/peer"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/rpcbind"
	"github.com/nfsbox/nfsbox/xdr"
)

// owner is what version 3 and 4 name as the owner of every entry.
const owner = "nfsbox"

// Service knows the programs of one server. All methods may be called
// concurrently.
type Service struct {
	programs []*xdr.Program
	udp      []*xdr.Program // those served over UDP as well

	mu        sync.Mutex // guards what follows
	listeners []endpoint // where the programs are
	mappers   []endpoint // where the port mapper alone is served
}

// New returns the service for a server of these programs and of its own, over
// TCP.
func New(programs ...*xdr.Program) *Service {
	own := []*xdr.Program{&rpcbind.PMAPVERS, &rpcbind.RPCBVERS, &rpcbind.RPCBVERS4}
	return &Service{programs: slices.Concat(programs, own), udp: own}
}

// OverUDP says which of the programs are served over UDP as well, beside its own.
// It is called before there are clients.
func (s *Service) OverUDP(programs ...*xdr.Program) { s.udp = append(s.udp, programs...) }

// Programs are those of the server, without its own, and whether each is served
// over UDP as well: what [Register] enters.
func (s *Service) Programs() (tcp, udp []*xdr.Program) {
	own := func(p *xdr.Program) bool { return p.Number == rpcbind.RPCBPROG }
	return slices.DeleteFunc(slices.Clone(s.programs), own), slices.DeleteFunc(slices.Clone(s.udp), own)
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

// refuse is SET and UNSET: nothing can be registered here.
func refuse[A any, PA decoded[A]](_ context.Context, c *oncrpc.Call) error {
	var a A
	if err := args[A, PA](c, &a); err != nil {
		return err
	}
	return c.Reply(&rpcbind.PMAPPROC_SETres{Value: false})
}

// serves reports whether the server has the program over that transport, in any version
// or, if vers is not 0, in that one. GETPORT and GETADDR ignore the version, as other port
// mappers do: the program itself tells the client which versions it has.
func (s *Service) serves(network string, prog, vers uint32) bool {
	return slices.ContainsFunc(s.programs, func(p *xdr.Program) bool {
		return p.Number == prog && (vers == 0 || p.Version == vers) && s.over(p, network)
	})
}

// getport is procedure 3 of version 2.
func (s *Service) getport(_ context.Context, c *oncrpc.Call) error {
	var a rpcbind.Mapping
	if err := args(c, &a); err != nil {
		return err
	}
	var res rpcbind.PMAPPROC_GETPORTres
	for _, n := range networks {
		if l, ok := local(c); ok && a.Prot == n.number && s.serves(n.name, a.Prog, 0) {
			res.Value = uint32(s.port(l, n.name, a.Prog))
		}
	}
	return c.Reply(&res)
}

// listed reports whether a client may have the list of all programs: only one that the
// rules of some export know. GETPORT, for one program, is answered to all.
func listed(ctx context.Context, c *oncrpc.Call) (bool, error) {
	conn, ok := c.State.(*peer.Conn)
	if !ok {
		return true, nil // a server without rules
	}
	return conn.Known(ctx)
}

// dump is procedure 4 of version 2.
func (s *Service) dump(ctx context.Context, c *oncrpc.Call) error {
	if err := c.Args.Finish(); err != nil {
		return err
	}
	known, err := listed(ctx, c)
	if err != nil {
		return err
	}
	var list rpcbind.Pmaplist
	l, ok := local(c)
	ok = ok && known
	for _, p := range s.programs {
		for _, n := range networks {
			if port := s.port(l, n.name, p.Number); ok && port != 0 && s.over(p, n.name) {
				list = append(list, rpcbind.PmaplistNode{Map: rpcbind.Mapping{
					Prog: p.Number, Vers: p.Version, Prot: n.number, Port: uint32(port),
				}})
			}
		}
	}
	return c.Reply(&list)
}

// getaddr is procedure 3 of versions 3 and 4.
func (s *Service) getaddr(_ context.Context, c *oncrpc.Call) error { return s.address(c, false) }

// getversaddr is procedure 9 of version 4: getaddr for this version only.
func (s *Service) getversaddr(_ context.Context, c *oncrpc.Call) error { return s.address(c, true) }

func (s *Service) address(c *oncrpc.Call, exact bool) error {
	var a rpcbind.Rpcb
	if err := args(c, &a); err != nil {
		return err
	}
	vers := a.RVers
	if !exact {
		vers = 0
	}
	var res rpcbind.RPCBVERS_RPCBPROC_GETADDRres
	l, ok := local(c)
	for _, n := range networks {
		port := s.port(l, n.name, a.RProg)
		netid, addr := universal(n.name, l.addr.Addr(), port)
		asked := string(a.RNetid) == netid || len(a.RNetid) == 0 && n.name == l.network
		if ok && asked && port != 0 && s.serves(n.name, a.RProg, vers) {
			res.Value = []byte(addr)
		}
	}
	return c.Reply(&res)
}

// dumpAddrs is procedure 4 of versions 3 and 4.
func (s *Service) dumpAddrs(ctx context.Context, c *oncrpc.Call) error {
	if err := c.Args.Finish(); err != nil {
		return err
	}
	known, err := listed(ctx, c)
	if err != nil {
		return err
	}
	var list rpcbind.RpcblistPtr
	l, ok := local(c)
	ok = ok && known
	for _, p := range s.programs {
		for _, n := range networks {
			port := s.port(l, n.name, p.Number)
			if !ok || port == 0 || !s.over(p, n.name) {
				continue
			}
			netid, addr := universal(n.name, l.addr.Addr(), port)
			list = append(list, rpcbind.RpList{RpcbMap: rpcbind.Rpcb{
				RProg: p.Number, RVers: p.Version, RNetid: []byte(netid), RAddr: []byte(addr), ROwner: []byte(owner),
			}})
		}
	}
	return c.Reply(&list)
}
