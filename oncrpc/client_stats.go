package oncrpc

import (
	"cmp"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/xdr"
)

// counters finds the counters of p, or makes them; nil above maxProcs. Client.mu is held.
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

// ended are calls of one procedure that took the same times: one caller made them at
// once, and one read brought their replies.
type ended struct {
	counters     *procCounters
	queued, took time.Duration // -1: it was never sent; 0: it got no reply
	calls        uint64
}

// end is pc alone.
func (pc *call) end() ended {
	e := ended{pc.counters, -1, pc.took(), 1}
	if pc.firstAt > 0 {
		e.queued = max(pc.firstAt-pc.began, 0)
	}
	return e
}

// and adds o if it took the same times. Else it observes e and goes on with o.
func (e *ended) and(o ended) {
	if e.counters == o.counters && e.queued == o.queued && e.took == o.took {
		e.calls += o.calls
		return
	}
	e.observe()
	*e = o
}

// observe adds the times of the calls to the histograms.
func (e *ended) observe() {
	if e.counters == nil {
		return
	}
	if e.queued >= 0 {
		e.counters.queued.RecordN(uint64(e.queued), e.calls)
	}
	if e.took > 0 {
		e.counters.latency.RecordN(uint64(e.took), e.calls)
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
