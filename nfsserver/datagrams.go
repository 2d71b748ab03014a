package nfsserver

import (
	"slices"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/rpcbind"
	"github.com/nfsbox/nfsbox/xdr"
)

// overUDP is services without the procedures that answer a short question by a
// list. The sender of a datagram can say that it comes from another host, to which the
// list would go, and be up to a thousand times what the sender has spent. Over TCP,
// where clients ask next, everybody is where he says.
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
