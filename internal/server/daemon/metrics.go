package daemon

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/nfsbox/nfsbox/internal/base/metric"
	"github.com/nfsbox/nfsbox/internal/server/fileapi"
	"github.com/nfsbox/nfsbox/internal/server/iogate"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/server/object/dir"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
)

// registry has all that Prometheus may read of this server, the process and the
// runtime.
func (d *daemon) registry() (*prometheus.Registry, error) {
	r := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), d.collector(),
	} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// scrape is what the rooms below say of themselves at one time.
type scrape struct {
	server  nfsserver.Stats
	replies oncrpc.ReplyCacheStats
	gate    iogate.Snapshot
	dirs    map[string]localfs.Snapshot
	slow    uint64
	left    int
	lost    logLosses
	process process
	api     *fileapi.Snapshot // nil: there is none
	store   *dir.Snapshot     // nil: there is none
}

// process is what the server takes of its host; 0 is not known.
type process struct {
	threads int
	cpu     time.Duration // total, of all processors
	memory  uint64        // resident bytes
}

func (d *daemon) scrape() *scrape {
	s := &scrape{
		server: d.srv.Stats(), replies: d.replies.Stats(), gate: d.gate.Snapshot(),
		dirs: make(map[string]localfs.Snapshot), slow: d.slow.count.Load(), left: int(d.sites.left.Load()), lost: d.logs.losses(), process: ourProcess(),
	}
	s.server.Procs = together(s.server.Procs)
	for site, x := range d.sites.now() {
		// One directory may be open more than once, with other handles.
		sum, more := s.dirs[site.dir], x.fs.Snapshot()
		addDirectory(&sum, &more)
		s.dirs[site.dir] = sum
	}
	s.api, s.store = d.api.snapshots()
	return s
}

// together adds up what has one name: the server counts a procedure once for each
// transport. Calls over UDP are few (MOUNT, the lock manager, the port mapper), and
// which transport they took is a label that nobody asks for.
func together(procs []oncrpc.ProcServerStats) []oncrpc.ProcServerStats {
	type name struct {
		proc    string
		version uint32
	}
	rows := make(map[name]int, len(procs))
	out := procs[:0]
	for i := range procs {
		p := &procs[i]
		n := name{p.Proc.Name, p.Proc.Version}
		at, ok := rows[n]
		if !ok {
			rows[n] = len(out)
			out = append(out, *p)
			continue
		}
		sum := &out[at]
		sum.Calls += p.Calls
		sum.Errors += p.Errors
		sum.BytesIn += p.BytesIn
		sum.BytesOut += p.BytesOut
		sum.Latency.Add(p.Latency)
	}
	return out
}

// collector reads the rooms' counters when it is asked, and keeps none itself:
// nothing is counted twice, and what is not read costs nothing.
type collector struct {
	d      *daemon
	limits struct{ requests, replies, connections float64 } // fixed at the start
}

func (d *daemon) collector() *collector {
	c := &collector{d: d}
	c.limits.requests, c.limits.replies = float64(d.c.MaxRequestBytes), float64(d.c.MaxReplyBytes)
	c.limits.connections = float64(d.c.MaxConnections)
	return c
}

// Describe implements prometheus.Collector. It describes nothing, which makes
// the collector "unchecked": what there is to be said of procedures and exports
// changes while it runs.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	s := c.d.scrape()
	w := writer{out: out}
	w.connections(s)
	w.gauge("connections_limit", "Connections that may be open.", c.limits.connections)
	w.gauge("request_bytes_limit", "Memory that requests may take.", c.limits.requests)
	w.gauge("reply_bytes_limit", "Memory that data on its way to clients may take.", c.limits.replies)
	w.procedures(s.server.Procs)
	w.replyCache(&s.replies)
	w.locks(s.server.Locks)
	w.localIO(s.server.LocalIO)
	w.api(s.api)
	w.store(s.store)
	w.lanes(&s.gate)
	w.directories(s.dirs)
	w.count("slow_calls_total", "Calls above the threshold for slow ones.", s.slow)
	w.logs(s.lost)
	w.gauge("directories_leaving", "Directories out of service in which calls are still at work.", float64(s.left))
	if n := s.process.threads; n > 0 {
		w.gauge("process_threads", "Threads of the process.", float64(n))
	}
}

// writer sends metrics.
type writer struct{ out chan<- prometheus.Metric }

func (w writer) send(name, help string, kind prometheus.ValueType, v float64, labels []string, values ...string) {
	w.out <- prometheus.MustNewConstMetric(prometheus.NewDesc("nfsbox_"+name, help, labels, nil), kind, v, printable(values)...)
}

func (w writer) gauge(name, help string, v float64) {
	w.send(name, help, prometheus.GaugeValue, v, nil)
}

func (w writer) count(name, help string, v uint64) {
	w.send(name, help, prometheus.CounterValue, float64(v), nil)
}

func (w writer) histogram(name, help string, h histogram, labels []string, values ...string) {
	w.out <- prometheus.MustNewConstHistogram(prometheus.NewDesc("nfsbox_"+name, help, labels, nil), h.n, h.sum, h.buckets, values...)
}

// printable are values as labels can have them: names of directories are bytes,
// and one that is no text must not end the process.
func printable(values []string) []string {
	for i, v := range values {
		if !utf8.ValidString(v) {
			values[i] = strconv.Quote(v)
		}
	}
	return values
}

// histogram is one in Prometheus' form: how many are up to each bound, and the
// sum, in seconds.
type histogram struct {
	n       uint64
	sum     float64
	buckets map[float64]uint64
}

// firstBound and lastBound are the bounds of a histogram, as powers of two in
// nanoseconds: from 8 us to 17 s. At these, and at no others in between, the
// buckets of package metric begin exactly.
const (
	firstBound = 13
	lastBound  = 34
)

func secondsOf(s *metric.Snapshot) histogram {
	h := histogram{n: s.Count, sum: float64(s.Sum) / float64(time.Second), buckets: make(map[float64]uint64)}
	cumulative, bound := uint64(0), firstBound
	for above, n := range s.All() {
		for ; bound <= lastBound && above > 1<<bound; bound++ {
			h.buckets[float64(uint64(1)<<bound)/1e9] = cumulative
		}
		cumulative += n
	}
	for ; bound <= lastBound; bound++ {
		h.buckets[float64(uint64(1)<<bound)/1e9] = cumulative
	}
	return h
}
