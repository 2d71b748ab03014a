package ops

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

// newRegistry has all that Prometheus may read of this server, the process and the
// runtime.
func newRegistry(of *config.Config, scrape func() *Scrape) (*prometheus.Registry, error) {
	r := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), newCollector(of, scrape),
	} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// collector reads the rooms' counters when it is asked, and keeps none itself:
// nothing is counted twice, and what is not read costs nothing.
type collector struct {
	scrape func() *Scrape
	limits struct{ requests, replies, connections float64 } // fixed at the start
}

func newCollector(of *config.Config, scrape func() *Scrape) *collector {
	c := &collector{scrape: scrape}
	c.limits.requests, c.limits.replies = float64(of.MaxRequestBytes), float64(of.MaxReplyBytes)
	c.limits.connections = float64(of.MaxConnections)
	return c
}

// Describe implements prometheus.Collector. It describes nothing, which makes
// the collector "unchecked": what there is to be said of procedures and exports
// changes while it runs.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

func (c *collector) Collect(out chan<- prometheus.Metric) {
	s := c.scrape()
	w := writer{out: out}
	w.connections(s)
	w.gauge("connections_limit", "Connections that may be open.", c.limits.connections)
	w.gauge("request_bytes_limit", "Memory that requests may take.", c.limits.requests)
	w.gauge("reply_bytes_limit", "Memory that data on its way to clients may take.", c.limits.replies)
	w.procedures(s.Server.Procs)
	w.replyCache(&s.Replies)
	w.locks(s.Server.Locks)
	w.localIO(s.Server.LocalIO)
	w.api(s.API)
	w.store(s.Store)
	w.lanes(&s.Gate)
	w.directories(s.dirs)
	w.upstreams(s.far)
	w.count("slow_calls_total", "Calls above the threshold for slow ones.", s.slow)
	w.logs(s.lost)
	w.gauge("directories_leaving", "Directories out of service in which calls are still at work.", float64(s.Leaving))
	if n := s.process.threads; n > 0 {
		w.gauge("process_threads", "Threads of the process.", float64(n))
	}
}
