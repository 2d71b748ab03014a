package nfsserver

import (
	"fmt"
	"slices"

	"github.com/nfsbox/nfsbox/nfsserver/internal/localio"
	"github.com/nfsbox/nfsbox/nfsserver/internal/nlm"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/nfsacl3"
)

// Stats are counters of a server.
type Stats struct {
	// RPC counts what comes over TCP, and UDP what comes in datagrams. Neither counts
	// the port mapper's own addresses.
	RPC, UDP oncrpc.ServerStats
	// Calls counts the calls of each procedure of NFS, under its name in RFC
	// 1813 without the prefix: "READ". Errors are those of them that were
	// answered with a status other than NFS3_OK.
	Calls  map[string]uint64
	Errors uint64
	// ReplyBytes is the memory of data that is being read or waits to be sent
	// now, and ReplyBuffers in how many buffers.
	ReplyBytes   int64
	ReplyBuffers int
	// Procs are the counters of all procedures of all programs that were called,
	// those over UDP behind those over TCP, and the port mapper's own addresses last.
	Procs []oncrpc.ProcServerStats
	// Replies is the cache of replies.
	Replies oncrpc.ReplyCacheStats
	// Locks are those of NLM; nil without it.
	Locks *LockStats
	// LocalIO are those of LOCALIO; nil without it.
	LocalIO *LocalIOStats
}

// LockStats are counters of the lock manager.
type LockStats = nlm.Stats

// LocalIOStats are counters of LOCALIO.
type LocalIOStats = localio.Stats

// Stats returns the server's counters.
func (s *Server) Stats() Stats {
	const prefix = len("NFSPROC3_")
	calls, failed := s.nfs.Calls()
	out := Stats{
		RPC: s.rpc.Stats(), Calls: make(map[string]uint64, len(calls)), Errors: failed,
		ReplyBytes: s.buffers.Bytes(), ReplyBuffers: s.buffers.Outstanding(),
	}
	out.UDP, out.Replies = s.udp.Stats(), s.replies.Stats()
	out.Procs = slices.Concat(s.rpc.Procs(), s.udp.Procs(), s.maps[0].Procs(), s.maps[1].Procs())
	if locks := s.lockService(); locks != nil {
		st := locks.Stats()
		out.Locks = &st
	}
	if s.local != nil {
		st := s.local.Stats()
		out.LocalIO = &st
	}
	for i, n := range calls {
		out.Calls[nfs3.NFS_V3.Procs[i].Name[prefix:]] = n
	}
	return out
}

// StatusOf returns the status of a call's results, as its protocol names it, such as
// NFS3ERR_STALE. It is nil if there are no results, or none with a status. It is for
// [Options].Observe.
func StatusOf(c *oncrpc.Served) fmt.Stringer {
	if c.Proc == nil || c.Failed || c.BytesOut == 0 || c.Proc.Number == 0 {
		return nil
	}
	switch c.Proc.Program {
	case nfs3.NFS_V3.Number, nfsacl3.NFS_ACL_V3.Number:
		return nfs3.Nfsstat3(c.Result)
	case mount3.MOUNT_V3.Number:
		if c.Proc.Version == mount3.MOUNT_V3.Version && c.Proc.Number == mount3.MOUNTPROC3_MNT.Number {
			return mount3.Mountstat3(c.Result)
		}
	}
	return nil
}
