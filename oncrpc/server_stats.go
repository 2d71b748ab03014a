package oncrpc

import (
	"time"

	"github.com/nfsbox/nfsbox/xdr"
)

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
		Conns: conns, RequestBytes: s.budget.Outstanding() + s.strangerBudget.Outstanding(), Buffers: s.pool.Outstanding(),
	}
}

// Procs returns the counters of procedures that have been called, in the order of the
// services.
func (s *Server) Procs() []ProcServerStats {
	var all []ProcServerStats
	for i := range s.services {
		b := &s.services[i]
		for j := range b.counters {
			m := &b.counters[j]
			st := ProcServerStats{
				Proc: &b.Program.Procs[j], Latency: m.latency.Snapshot(), Errors: m.errors.Load(),
				BytesIn: m.bytesIn.Load(), BytesOut: m.bytesOut.Load(),
			}
			if st.Calls = st.Latency.Count + m.unanswered.Load(); st.Calls > 0 {
				all = append(all, st)
			}
		}
	}
	return all
}

// measure counts c, whose reply is ready to be queued, and returns how long it took. err is
// what the handler has returned.
func (c *Call) measure(err error) time.Duration {
	took, m := c.s.clock()-c.arrived, c.counters
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

// args are the arguments from their beginning, also when the handler has read them.
func (c *Call) args() []byte {
	d := xdr.NewDecoder(c.rec.B)
	if new(callHead).decode(&d) != nil {
		return nil
	}
	return d.Rest()
}

// observe tells ServerOptions.Observe of c if it took long or is sampled.
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
		Failed: err != nil, Sampled: sampled, Args: c.args(),
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
