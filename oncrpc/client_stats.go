package oncrpc

import (
	"cmp"
	"slices"

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
func (s *procCounters) count(pc *call, err error) {
	s.Calls++
	if err != nil {
		s.Errors++
	}
	s.Retransmits += uint64(pc.retransmits)
	s.Timeouts += uint64(pc.timeouts)
	s.BytesOut += pc.bytesOut
	s.BytesIn += pc.bytesIn
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
