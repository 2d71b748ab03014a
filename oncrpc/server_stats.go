package oncrpc

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/metric"
	"github.com/nfsbox/nfsbox/xdr"
)

type serverCounters struct {
	accepted, evicted, refused, calls, denied, failed, dropped, late, unsent, panics atomic.Uint64
	bytesIn, bytesOut                                                                atomic.Uint64
}

// ServerStats are counters of a server. All but Conns, RequestBytes and Buffers
// only grow.
type ServerStats struct {
	Accepted     uint64 // connections
	Evicted      uint64 // connections closed to make room for others
	Refused      uint64 // connections closed at once, for want of room or by NewConn
	Calls        uint64 // calls read, answered in whatever way
	Denied       uint64 // calls answered MSG_DENIED
	Failed       uint64 // calls answered with an accept_stat other than SUCCESS
	Dropped      uint64 // calls whose handler wanted no reply
	Late         uint64 // calls dropped because their connection was lost before their handler began
	Unsent       uint64 // replies to datagrams that could not be sent
	Panics       uint64 // handlers that panicked
	BytesIn      uint64
	BytesOut     uint64
	Conns        int   // open now
	RequestBytes int64 // of MaxRequestBytes, taken now, and of what clients have that are not admitted
	Buffers      int   // lent out: the connections' read buffers, requests, replies
}

// Stats returns the server's counters.
func (s *Server) Stats() ServerStats {
	s.mu.Lock()
	conns := len(s.conns)
	s.mu.Unlock()
	n := &s.stats
	return ServerStats{
		Accepted: n.accepted.Load(), Evicted: n.evicted.Load(), Refused: n.refused.Load(),
		Calls: n.calls.Load(), Denied: n.denied.Load(), Failed: n.failed.Load(),
		Dropped: n.dropped.Load(), Late: n.late.Load(), Unsent: n.unsent.Load(), Panics: n.panics.Load(),
		BytesIn: n.bytesIn.Load(), BytesOut: n.bytesOut.Load(),
		Conns: conns, RequestBytes: s.budget.outstanding() + s.aside.outstanding(), Buffers: s.pool.Outstanding(),
	}
}

// ProcServerStats are the counters of one procedure at a server. All only grow.
type ProcServerStats struct {
	Proc     *xdr.Proc
	Calls    uint64     // calls whose reply was queued, and those that joined another or came too late
	Errors   uint64     // of them, those answered with an error of RPC or with silence; a status in a result is no error here
	BytesIn  uint64     // of requests, without record marks
	BytesOut uint64     // of replies, bulk included
	Latency  *Histogram // nanoseconds from the record's arrival to the queueing of its reply
}

// Served is a call that was answered, or whose handler wanted no reply.
type Served struct {
	Proc     *xdr.Proc // nil: unknown
	Client   net.Addr
	XID      uint32
	UID      uint32        // the caller's, as an AUTH_SYS credential says
	HasUID   bool          // there was one
	Took     time.Duration // from the record's arrival to its reply, which is about to be queued
	Waited   time.Duration // of it, until the handler began; 0 if it was not called
	BytesIn  int           // of the request, without record marks
	BytesOut int           // of the reply, bulk included; 0: there is none
	Result   uint32        // the first word of the results, which in NFS and its like is the status; 0: there is none
	Failed   bool          // answered with an error of RPC, or with silence
	Sampled  bool          // [ServerOptions].Sample picked it
}

// meter counts the calls of one procedure at a server.
type meter struct {
	hint              atomic.Int32  // how long its replies get
	errors, aside     atomic.Uint64 // aside: calls without a reply of their own
	bytesIn, bytesOut atomic.Uint64
	latency           metric.Histogram
}

// clock is the time since the server was made.
func (s *Server) clock() time.Duration { return time.Since(s.epoch) }

// measure counts c, whose reply is ready to be queued: err is what the handler
// has returned. It answers how long c took.
func (c *Call) measure(err error) time.Duration {
	took, m := c.s.clock()-c.arrived, c.meter
	if m == nil {
		return took
	}
	m.latency.Duration(took)
	m.bytesIn.Add(uint64(len(c.rec.B)))
	if n := c.reply.length(); n > 0 {
		m.bytesOut.Add(uint64(n))
	}
	if err != nil {
		m.errors.Add(1)
	}
	return took
}

// observe tells of c, which took so long, if somebody wants to know.
func (c *Call) observe(err error, took time.Duration) {
	o := &c.s.o
	if o.Observe == nil {
		return
	}
	sampled := o.Sample != nil && o.Sample()
	if !sampled && (o.Slow == 0 || took < o.Slow) {
		return
	}
	served := Served{
		Proc: c.Proc, Client: c.Remote, XID: c.XID, Took: took, BytesIn: len(c.rec.B), BytesOut: c.reply.length(),
		Failed: err != nil, Sampled: sampled,
	}
	if err == nil {
		served.Result = c.reply.result()
	}
	if c.began != 0 {
		served.Waited = c.began - c.arrived
	}
	if c.Auth.Flavor == AuthSysFlavor {
		served.UID, served.HasUID = sysUID(c.Auth.Body)
	}
	o.Observe(served)
}

// Procs returns the counters of the procedures that have been called, in the
// order of the services.
func (s *Server) Procs() []ProcServerStats {
	var all []ProcServerStats
	for i := range s.services {
		b := &s.services[i]
		for j := range b.meters {
			m := &b.meters[j]
			st := ProcServerStats{
				Proc: &b.Program.Procs[j], Latency: m.latency.Snapshot(), Errors: m.errors.Load(),
				BytesIn: m.bytesIn.Load(), BytesOut: m.bytesOut.Load(),
			}
			if st.Calls = st.Latency.Count + m.aside.Load(); st.Calls > 0 {
				all = append(all, st)
			}
		}
	}
	return all
}
