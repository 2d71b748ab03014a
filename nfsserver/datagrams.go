package nfsserver

import (
	"slices"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/rpcbind"
	"github.com/nfsbox/nfsbox/xdr"
)

// overUDP returns the services without the procedures that answer a short call with a
// list. The sender of a datagram can forge its address; the list would then go to the
// victim, with up to a thousand times the bytes of the call. Over TCP, where clients ask
// next, addresses cannot be forged.
func overUDP(services []oncrpc.Service) []oncrpc.Service {
	lists := []*xdr.Proc{
		mount3.MOUNTPROC3_DUMP, mount3.MOUNTPROC3_EXPORT, mount3.MOUNTPROC_DUMP, mount3.MOUNTPROC_EXPORT,
		rpcbind.PMAPPROC_DUMP, rpcbind.RPCBVERS_RPCBPROC_DUMP, rpcbind.RPCBVERS4_RPCBPROC_DUMP,
	}
	services = slices.Clone(services)
	for i := range services {
		s := &services[i]
		s.Handlers = slices.Clone(s.Handlers)
		for _, p := range lists {
			if p.Program == s.Program.Number && p.Version == s.Program.Version {
				s.Handlers[p.Number] = nil
			}
		}
	}
	return services
}
