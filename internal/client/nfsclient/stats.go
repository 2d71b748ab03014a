package nfsclient

import (
	"github.com/nfsbox/nfsbox/internal/client/pace"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
)

// Stats are the counters of a connection to NFS since it was made.
type Stats struct {
	RPC   oncrpc.Stats
	Procs []ProcStats // of the procedures that have been called
	// Pace is the state of the limiter, if there is one.
	Pace [pace.Classes]pace.Snapshot
}

// ProcStats are the counters of a procedure.
type ProcStats struct {
	oncrpc.ProcStats
	// Statuses are how often it was answered with each status other than NFS3_OK; see
	// v3.FS.Statuses.
	Statuses map[vfs.Status]uint64
}

// Stats returns the counters of the connection to NFS.
func (c *Conn) Stats() Stats {
	s := Stats{RPC: c.rpc.Stats()}
	for _, p := range c.rpc.Procs() {
		s.Procs = append(s.Procs, ProcStats{ProcStats: p, Statuses: c.fs.Statuses(p.Proc)})
	}
	if l := c.opt.FS.Pace; l != nil {
		s.Pace = l.Snapshot()
	}
	return s
}
