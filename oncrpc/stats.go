package oncrpc

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/metric"
	"github.com/nfsbox/nfsbox/xdr"
)

// Histogram is a copy of the counts of one kind of value. Its methods give quantiles.
type Histogram = metric.Snapshot

// ProcStats are a client's counters of one procedure. All only grow.
type ProcStats struct {
	Proc        *xdr.Proc
	Calls       uint64     // calls made, and ended
	Errors      uint64     // of them, without a usable reply; a status in a result is no error here
	Retransmits uint64     // sent again after they had been sent
	Timeouts    uint64     // tries that got no reply in time
	BytesOut    uint64     // of records, bulk included
	BytesIn     uint64     // the same of replies
	Queued      *Histogram // nanoseconds from Call to the sending of the first try
	Latency     *Histogram // nanoseconds from the sending of the answered try to its reply
}

// procKey tells procedures apart, whatever xdr.Proc describes them.
type procKey struct{ program, version, number uint32 }

// procCounters counts the calls of one procedure.
type procCounters struct {
	ProcStats // guarded by Client.mu; without the histograms
	queued    metric.Histogram
	latency   metric.Histogram
}

// ServerStats are counters of a server. All but Conns, RequestBytes and Buffers
// only grow.
type ServerStats struct {
	Accepted     uint64 // connections
	Evicted      uint64 // connections closed to make room for others
	Refused      uint64 // connections closed at once, for want of room or by NewConn
	Calls        uint64 // calls read
	Denied       uint64 // calls answered MSG_DENIED
	Failed       uint64 // calls answered with an accept_stat other than SUCCESS
	Dropped      uint64 // calls whose handler wanted no reply
	Late         uint64 // calls dropped because their connection was lost before their handler began
	Unsent       uint64 // replies to datagrams that could not be sent
	Panics       uint64 // handlers that panicked
	BytesIn      uint64
	BytesOut     uint64
	Conns        int   // open now
	RequestBytes int64 // memory that requests have taken now, of all clients
	Buffers      int   // lent out: the connections' read buffers, requests, replies
}

type serverCounters struct {
	accepted, evicted, refused, calls, denied, failed, dropped, late, unsent, panics atomic.Uint64
	bytesIn, bytesOut                                                                atomic.Uint64
}

// ProcServerStats are the counters of one procedure at a server. All only grow.
type ProcServerStats struct {
	Proc     *xdr.Proc
	Calls    uint64     // calls that have ended, of which some joined another or came too late
	Errors   uint64     // of them, those answered with an error of RPC or not at all; a status in a result is no error here
	BytesIn  uint64     // of requests, without record marks
	BytesOut uint64     // of replies, bulk included
	Latency  *Histogram // nanoseconds from the record's arrival to the queueing of its reply
}

// procServerCounters are a server's counters of one procedure.
type procServerCounters struct {
	hint               atomic.Int32  // the longest reply so far, in bytes, up to maxReplyHint
	errors, unanswered atomic.Uint64 // unanswered: calls without a reply of their own
	bytesIn, bytesOut  atomic.Uint64
	latency            metric.Histogram
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
	Args     []byte        // of the procedure, not checked; borrowed until Observe returns
}
