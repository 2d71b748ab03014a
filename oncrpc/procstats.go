package oncrpc

import (
	"github.com/nfsbox/nfsbox/internal/base/metric"
	"github.com/nfsbox/nfsbox/xdr"
)

// Histogram is what has been counted of one kind of value; see its methods.
type Histogram = metric.Snapshot

// ProcStats are the counters of one procedure. All only grow.
type ProcStats struct {
	Proc        *xdr.Proc
	Calls       uint64 // calls made, and ended
	Errors      uint64 // of them, without a usable reply; a status in a result is no error here
	Retransmits uint64
	Timeouts    uint64     // tries that got no reply in time
	BytesOut    uint64     // of records, bulk included
	BytesIn     uint64     // the same of replies
	Queued      *Histogram // nanoseconds from Call to the sending of the first try
	Latency     *Histogram // nanoseconds from the sending of the answered try to its reply
}

// procKey is what makes a procedure, however it is described.
type procKey struct{ program, version, number uint32 }

// procCounters counts the calls of one procedure.
type procCounters struct {
	ProcStats // guarded by Client.mu; without the histograms
	queued    metric.Histogram
	latency   metric.Histogram
}
