package nfsbox

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/metric"
	"github.com/nfsbox/nfsbox/internal/client/nfsclient"
	"github.com/nfsbox/nfsbox/internal/client/pace"
	"github.com/nfsbox/nfsbox/vfs"
)

// Stats are a client's counters. They only grow, except those marked "now". In JSON durations
// are nanoseconds.
type Stats struct {
	RPCs        uint64 `json:"rpcs"`        // calls made
	Retransmits uint64 `json:"retransmits"` // calls sent again
	Timeouts    uint64 `json:"timeouts"`    // tries that got no reply in time
	Cancelled   uint64 `json:"cancelled"`   // calls given up by their caller
	Reconnects  uint64 `json:"reconnects"`
	BytesIn     uint64 `json:"bytes_in"`  // received
	BytesOut    uint64 `json:"bytes_out"` // sent

	InFlight    int   `json:"in_flight"`   // now: calls in flight
	Connections int   `json:"connections"` // now: open ones
	Dirty       int64 `json:"dirty"`       // now: memory of written data that is not known to be stable, in bytes

	Procs   []ProcStats  `json:"procs"` // of the procedures that have been called
	Load    []LoadStats  `json:"load"`  // metadata, reads, writes
	Buffers BufferStats  `json:"buffers"`
	LocalIO LocalIOStats `json:"local_io"`
	Cache   CacheStats   `json:"cache"`
	Attrs   AttrStats    `json:"attrs"`
	Locks   LockStats    `json:"locks"`
}

// AttrStats are the counters of the attributes, names and rights that are kept (ac in the URL, WithAttrCache). Without that all
// are 0.
type AttrStats struct {
	Objects int    `json:"objects"` // now: of which something is kept
	Names   int    `json:"names"`   // now: that are kept
	Hits    uint64 `json:"hits"`    // GETATTR, ACCESS and LOOKUP that were answered from what is kept
	Misses  uint64 `json:"misses"`  // those that went to the server
}

// LockStats are the counters of the locks that the client's files have at the server.
type LockStats struct {
	Locks     int    `json:"locks"`     // now: ranges that are held
	Granted   uint64 `json:"granted"`   // locks
	Denied    uint64 `json:"denied"`    // times that another's lock stood in the way
	Reclaimed uint64 `json:"reclaimed"` // locks that were had back after a restart of the server
	Lost      uint64 `json:"lost"`      // locks that were not; an error has said so
	Unsettled uint64 `json:"unsettled"` // locks that may have stayed at a server that did not answer
}

// BufferStats are the counters of the buffers between the program and the server. Bytes count
// each time that they are sent.
type BufferStats struct {
	Dirty int64 `json:"dirty"` // now: as in Stats

	BytesWritten    uint64 `json:"bytes_written"`    // sent in the background, and answered
	Resent          uint64 `json:"resent"`           // bytes sent again because the server had restarted
	Retries         uint64 `json:"retries"`          // WRITEs and COMMITs repeated after a temporary failure
	Commits         uint64 `json:"commits"`          // COMMITs that were answered
	VerifierChanges uint64 `json:"verifier_changes"` // restarts of the server, counted by each file with dirty bytes
	BytesLost       uint64 `json:"bytes_lost"`       // given up; an error has said so

	ReadAhead       int64  `json:"read_ahead"`        // now: memory of what is read ahead, in bytes
	ReadAheadBytes  uint64 `json:"read_ahead_bytes"`  // read ahead
	ReadAheadHits   uint64 `json:"read_ahead_hits"`   // reads that were answered from it, or waited for it
	ReadAheadMisses uint64 `json:"read_ahead_misses"` // reads that went to the server
	ReadAheadWasted uint64 `json:"read_ahead_wasted"` // bytes read ahead that were never read
}

// ProcStats are the counters of one procedure. They only grow.
type ProcStats struct {
	Name        string `json:"name"`  // as RFC 1813 has it: "READ"
	Calls       uint64 `json:"calls"` // that have ended
	Errors      uint64 `json:"errors"`
	Retransmits uint64 `json:"retransmits"`
	Timeouts    uint64 `json:"timeouts"`
	BytesIn     uint64 `json:"bytes_in"`
	BytesOut    uint64 `json:"bytes_out"`
	// Statuses are how often NFS answered with each error, by name: "NOENT". Such calls
	// are not among the Errors.
	Statuses map[string]uint64 `json:"statuses,omitempty"`
	Queued   *Histogram        `json:"-"` // nanoseconds from the call to its sending
	Latency  *Histogram        `json:"-"` // nanoseconds from sending to reply
}

// Histogram counts values, and gives their number, sum, mean, maximum and quantiles. The caller
// owns it; nil is empty.
type Histogram = metric.Snapshot

// Distribution summarises a histogram of durations.
type Distribution struct {
	Count uint64        `json:"count"`
	Mean  time.Duration `json:"mean_ns"`
	P50   time.Duration `json:"p50_ns"`
	P90   time.Duration `json:"p90_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`
}

// Distribute summarises a histogram of nanoseconds.
func Distribute(h *Histogram) Distribution {
	if h == nil {
		return Distribution{}
	}
	return Distribution{
		Count: h.Count,
		Mean:  time.Duration(h.Mean()),
		P50:   h.Duration(0.50),
		P90:   h.Duration(0.90),
		P99:   h.Duration(0.99),
		Max:   time.Duration(h.Max),
	}
}

// MarshalJSON summarises the histograms.
func (p ProcStats) MarshalJSON() ([]byte, error) {
	type plain ProcStats
	return json.Marshal(struct {
		plain
		Queued  Distribution `json:"queued"`
		Latency Distribution `json:"latency"`
	}{plain(p), Distribute(p.Queued), Distribute(p.Latency)})
}

// LoadStats are the state of the limit of one class of calls.
type LoadStats struct {
	Class    string        `json:"class"` // "metadata", "read" or "write"
	Limit    int           `json:"limit"` // now: calls that may be in flight
	InFlight int           `json:"in_flight"`
	Waiting  int           `json:"waiting"`
	Latency  time.Duration `json:"latency_ns"` // mean of recent calls; 0 under a fixed limit
	Waits    uint64        `json:"waits"`      // calls that had to wait
	BackOffs uint64        `json:"back_offs"`  // times that the limit fell for a busy or silent server
}

// Stats returns the counters since Dial.
func (c *Client) Stats() Stats {
	s, buffers, ahead, locks := c.conn.Stats(), c.fs.Stats(), c.ahead.Stats(), c.locks.Stats()
	out := Stats{
		RPCs:        s.RPC.Calls,
		Retransmits: s.RPC.Retransmits,
		Timeouts:    s.RPC.Timeouts,
		Cancelled:   s.RPC.Cancelled,
		Reconnects:  s.RPC.Reconnects,
		BytesIn:     s.RPC.BytesIn,
		BytesOut:    s.RPC.BytesOut,
		InFlight:    s.RPC.InFlight,
		Connections: s.RPC.Conns,
		Dirty:       buffers.Dirty,
		Procs:       make([]ProcStats, 0, len(s.Procs)), // not nil: JSON needs a list
		Buffers: BufferStats{
			Dirty:           buffers.Dirty,
			BytesWritten:    buffers.BytesWritten,
			Resent:          buffers.Resent,
			Retries:         buffers.Retries,
			Commits:         buffers.Commits,
			VerifierChanges: buffers.VerifierChanges,
			BytesLost:       buffers.BytesLost,
			ReadAhead:       ahead.Held,
			ReadAheadBytes:  ahead.Bytes,
			ReadAheadHits:   ahead.Hits,
			ReadAheadMisses: ahead.Misses,
			ReadAheadWasted: ahead.Wasted,
		},
		LocalIO: c.localStats(),
		Cache:   c.cacheStats(),
		Attrs:   c.attrStats(),
		Locks: LockStats{Locks: locks.Locks, Granted: locks.Granted, Denied: locks.Denied, Reclaimed: locks.Reclaimed,
			Lost: locks.Lost, Unsettled: locks.Unsettled},
	}
	for i := range s.Procs {
		out.Procs = append(out.Procs, procStats(&s.Procs[i]))
	}
	for class, l := range s.Pace {
		out.Load = append(out.Load, LoadStats{
			Class:    pace.Class(class).String(),
			Limit:    l.Limit,
			InFlight: l.InFlight,
			Waiting:  l.Waiting,
			Latency:  l.Smooth,
			Waits:    l.Waits,
			BackOffs: l.BackOffs,
		})
	}
	return out
}

func (c *Client) attrStats() AttrStats {
	if c.attrs == nil {
		return AttrStats{}
	}
	return AttrStats(c.attrs.Stats())
}

func procStats(p *nfsclient.ProcStats) ProcStats {
	_, name, _ := strings.Cut(p.Proc.Name, "_") // NFSPROC3_READ, ACLPROC3_GETACL
	out := ProcStats{
		Name:        name,
		Calls:       p.Calls,
		Errors:      p.Errors,
		Retransmits: p.Retransmits,
		Timeouts:    p.Timeouts,
		BytesIn:     p.BytesIn,
		BytesOut:    p.BytesOut,
		Queued:      p.Queued,
		Latency:     p.Latency,
	}
	for s, n := range p.Statuses {
		if out.Statuses == nil {
			out.Statuses = make(map[string]uint64, len(p.Statuses))
		}
		out.Statuses[statusName(s)] += n
	}
	return out
}

// statusName is the name under which a status is counted.
func statusName(s vfs.Status) string {
	if s == 0 {
		return "UNKNOWN"
	}
	return s.Name()
}
