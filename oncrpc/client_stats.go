package oncrpc

import (
	"cmp"
	"slices"

	"github.com/nfsbox/nfsbox/internal/metric"
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

// procKey is what makes a procedure, whoever describes it.
type procKey struct{ program, version, number uint32 }

// procCounters counts the calls of one procedure.
type procCounters struct {
	ProcStats // guarded by Client.mu; without the histograms
	queued    metric.Histogram
	latency   metric.Histogram
}

// counters finds the counters of p, or makes them. Without room it answers nil.
// Client.mu is held.
func (c *Client) counters(p *xdr.Proc) *procCounters {
	if c.lastProc != nil && c.lastProc.Proc == p {
		return c.lastProc
	}
	key := procKey{p.Program, p.Version, p.Number}
	pc := c.procs[key]
	if pc == nil {
		if len(c.procs) == maxProcs {
			return nil
		}
		pc = &procCounters{ProcStats: ProcStats{Proc: p}}
		c.procs[key] = pc
	}
	c.lastProc = pc
	return pc
}

// count adds a call that has ended. Client.mu is held.
func (s *ProcStats) count(pc *call, err error) {
	s.Calls++
	if err != nil {
		s.Errors++
	}
	s.Retransmits += uint64(pc.retransmits)
	s.Timeouts += uint64(pc.timeouts)
	s.BytesOut += pc.bytesOut
	s.BytesIn += pc.bytesIn
}

// observe adds the times of a call that has ended.
func (s *procCounters) observe(pc *call) {
	if pc.firstAt > 0 {
		s.queued.Duration(pc.firstAt - pc.began)
	}
	if took := pc.took(); took > 0 {
		s.latency.Duration(took)
	}
}

// Procs returns the counters of the procedures that have been called, in the
// order of their numbers.
func (c *Client) Procs() []ProcStats {
	c.mu.Lock()
	all := make([]ProcStats, 0, len(c.procs))
	histograms := make([]*procCounters, 0, len(c.procs))
	for _, pc := range c.procs {
		histograms = append(histograms, pc)
	}
	slices.SortFunc(histograms, func(a, b *procCounters) int {
		x, y := a.Proc, b.Proc
		return cmp.Or(cmp.Compare(x.Program, y.Program), cmp.Compare(x.Version, y.Version), cmp.Compare(x.Number, y.Number))
	})
	for _, pc := range histograms {
		all = append(all, pc.ProcStats)
	}
	c.mu.Unlock()
	for i, pc := range histograms {
		all[i].Queued, all[i].Latency = pc.queued.Snapshot(), pc.latency.Snapshot()
	}
	return all
}
