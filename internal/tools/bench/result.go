package bench

import (
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/base/metric"
)

// Latency is how long successful operations took, in microseconds. A quantile is
// off by at most a sixteenth of itself.
type Latency struct {
	Unit string  `json:"unit"` // "us"
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

func latencyOf(s *metric.Snapshot) Latency {
	us := func(q float64) float64 { return float64(s.Quantile(q)) / 1e3 }
	return Latency{
		Unit: "us", Mean: s.Mean() / 1e3, P50: us(0.5), P90: us(0.9), P99: us(0.99), P999: us(0.999), Max: float64(s.Max) / 1e3,
	}
}

// Sample is what the last second of the measured part was like.
type Sample struct {
	Seconds float64 `json:"seconds"` // since its start
	Ops     uint64  `json:"ops"`     // since its start, as the others are
	Errors  uint64  `json:"errors"`
	Bytes   uint64  `json:"bytes"`
	Entries uint64  `json:"entries"`

	OpsPerSecond     float64 `json:"ops_per_second"` // of this second, as the others are
	BytesPerSecond   float64 `json:"bytes_per_second"`
	EntriesPerSecond float64 `json:"entries_per_second"`
	Latency          Latency `json:"latency"` // but for Max, which is of all time
}

// CPU is the processor time of the measured part, user and system together where
// nothing else is said.
type CPU struct {
	ClientPerOp  float64 `json:"client_us_per_op"` // microseconds
	ClientUser   float64 `json:"client_user_seconds"`
	ClientSystem float64 `json:"client_system_seconds"`
	// Of the server's process, in steps of 10 ms; nil where it cannot be seen.
	ServerPerOp *float64 `json:"server_us_per_op,omitempty"`
	Server      *float64 `json:"server_seconds,omitempty"`
}

// Result is what was measured. Figures are of the measured part alone, but for
// WarmUpOps.
type Result struct {
	Verb        string `json:"verb"`
	URL         string `json:"url"`
	Concurrency int    `json:"concurrency"`
	Size        int    `json:"size"`            // of an operation, in bytes; 0 for verbs without
	Batch       int    `json:"batch,omitempty"` // calls that a caller makes together, if they are more than one

	Complete  bool    `json:"complete"` // the run was not cut short
	Ops       uint64  `json:"ops"`      // that succeeded
	Errors    uint64  `json:"errors"`   // operations, and commits, that failed
	Faults    []Fault `json:"faults"`   // by kind
	WarmUpOps uint64  `json:"warmup_ops"`
	Seconds   float64 `json:"seconds"`

	OpsPerSecond     float64 `json:"ops_per_second"`
	Bytes            uint64  `json:"bytes"`
	BytesPerSecond   float64 `json:"bytes_per_second"`
	Entries          uint64  `json:"entries"`
	EntriesPerSecond float64 `json:"entries_per_second"`
	Commits          uint64  `json:"commits"`
	Latency          Latency `json:"latency"`
	CPU              CPU     `json:"cpu"`

	AllocsPerOp     float64 `json:"allocs_per_op"` // of this process, objects and bytes
	AllocBytesPerOp float64 `json:"alloc_bytes_per_op"`

	RPCs        uint64 `json:"rpcs"`
	Retransmits uint64 `json:"retransmits"`
	Timeouts    uint64 `json:"timeouts"`
	Reconnects  uint64 `json:"reconnects"`
	BytesIn     uint64 `json:"wire_bytes_in"` // headers and all
	BytesOut    uint64 `json:"wire_bytes_out"`

	// ServerThreads is the most threads that the server's process was seen to
	// have; nil where it cannot be seen.
	ServerThreads *int `json:"server_threads,omitempty"`
	// What the server's metrics and the client count in the measured time, by
	// procedure ("READ", "Put"); ServerOps is the sum of the server's.
	ServerOps   *uint64           `json:"server_ops,omitempty"`
	ServerCalls map[string]uint64 `json:"server_calls,omitempty"`
	ClientCalls map[string]uint64 `json:"client_calls,omitempty"`
	// CountsMatch says that the server has counted each of the client's calls and
	// nobody else's of the same procedures, and as many operations as Ops and
	// Errors say. nil where it cannot be known: without metrics, of a run that
	// was cut short, or one in which calls were sent again.
	CountsMatch *bool `json:"counts_match,omitempty"`

	// What there is to be known of how files were stored, for the verbs that
	// work on a dataset.
	Dataset *Dataset `json:"dataset,omitempty"`

	// Of the end of the run.
	Connections int                `json:"connections"`
	Load        []nfsbox.LoadStats `json:"load"`
}

// Dataset is what files a run was about.
type Dataset struct {
	Directory string `json:"directory"` // its name, below the URL
	Files     uint64 `json:"files"`
	Seed      uint64 `json:"seed"`
	Sync      bool   `json:"sync"`   // upload: a file is on the disk when its operation ends
	Atomic    bool   `json:"atomic"` // upload: it has its name when it is whole, and not before
}

// Failures says what has failed, an error for each kind; nil if nothing has.
func (res *Result) Failures() error { return asError(res.Faults) }

// counters are what a client counts. All but connections and load only grow.
type counters struct {
	rpcs, retransmits, timeouts, reconnects uint64
	bytesIn, bytesOut                       uint64
	commits                                 uint64

	calls map[string]uint64 // by procedure, as the server names them

	connections int
	load        []nfsbox.LoadStats
}

func (r *run) result(p, warm *part) *Result {
	latency, m := p.counted()
	before, _ := warm.counted()
	res := &Result{
		Verb: r.o.Verb, URL: r.o.URL, Concurrency: r.o.Concurrency, Size: r.o.Size,
		Ops: latency.Count, Errors: p.faults.total(), Faults: p.faults.all(), WarmUpOps: before.Count + warm.faults.total(),
		Seconds: p.took.Seconds(), Bytes: m.bytes, Entries: m.entries, Latency: latencyOf(latency),
	}
	if r.o.Batch > 1 {
		res.Batch = r.o.Batch
	}
	if r.verb.files {
		res.Dataset = &Dataset{Directory: Prefix + r.o.Tag, Files: r.o.Files, Seed: r.o.Seed, Sync: !r.o.NoSync, Atomic: !r.o.InPlace}
	}
	res.OpsPerSecond = per(float64(res.Ops), res.Seconds)
	res.BytesPerSecond = per(float64(res.Bytes), res.Seconds)
	res.EntriesPerSecond = per(float64(res.Entries), res.Seconds)
	return res
}

// cost fills in what lies between two readings.
func (res *Result) cost(from, to reading) {
	user, system := to.client.User-from.client.User, to.client.System-from.client.System
	ops := float64(res.Ops)
	res.CPU = CPU{ClientPerOp: per(micros(user+system), ops), ClientUser: user.Seconds(), ClientSystem: system.Seconds()}
	res.AllocsPerOp = per(float64(to.allocs-from.allocs), ops)
	res.AllocBytesPerOp = per(float64(to.bytes-from.bytes), ops)
	a, b := from.counted, to.counted
	res.RPCs, res.Retransmits, res.Timeouts = b.rpcs-a.rpcs, b.retransmits-a.retransmits, b.timeouts-a.timeouts
	res.Reconnects, res.Commits = b.reconnects-a.reconnects, b.commits-a.commits
	res.BytesIn, res.BytesOut = b.bytesIn-a.bytesIn, b.bytesOut-a.bytesOut
	res.ClientCalls = since(a.calls, b.calls)
	res.Connections, res.Load = b.connections, b.load
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func per(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}
