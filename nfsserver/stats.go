package nfsserver

import (
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// Stats are counters of a server.
type Stats struct {
	RPC oncrpc.ServerStats
	// Calls counts the calls of each procedure of NFS, under its name in RFC
	// 1813 without the prefix: "READ". Errors are those of them that were
	// answered with a status other than NFS3_OK.
	Calls  map[string]uint64
	Errors uint64
	// ReplyBytes is the memory of data that is being read or waits to be sent
	// now, and ReplyBuffers in how many buffers.
	ReplyBytes   int64
	ReplyBuffers int
}

// Stats returns the server's counters.
func (s *Server) Stats() Stats {
	const prefix = len("NFSPROC3_")
	calls, failed := s.nfs.Calls()
	out := Stats{
		RPC: s.rpc.Stats(), Calls: make(map[string]uint64, len(calls)), Errors: failed,
		ReplyBytes: s.buffers.Bytes(), ReplyBuffers: s.buffers.Outstanding(),
	}
	for i, n := range calls {
		out.Calls[nfs3.NFS_V3.Procs[i].Name[prefix:]] = n
	}
	return out
}
