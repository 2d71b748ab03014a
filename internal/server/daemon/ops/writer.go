package ops

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nfsbox/nfsbox/internal/base/metric"
)

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
