package ops

import "github.com/prometheus/client_golang/prometheus"

// Upstream is what has been counted at another server that an export stands for, and of the cache of what that has. The
// cache's counters go on from run to run.
type Upstream struct {
	Calls, Retransmits, BytesIn, BytesOut, Locks uint64

	Entries, Bytes              uint64
	Hits, Misses, Bypassed      uint64
	BytesHit, BytesFilled       uint64
	Stale, BadChecksums, Culled uint64
}

// addUpstream adds up what is told of other servers.
func addUpstream(sum, s *Upstream) {
	sum.Calls += s.Calls
	sum.Retransmits += s.Retransmits
	sum.BytesIn += s.BytesIn
	sum.BytesOut += s.BytesOut
	sum.Locks += s.Locks
	sum.Entries += s.Entries
	sum.Bytes += s.Bytes
	sum.Hits += s.Hits
	sum.Misses += s.Misses
	sum.Bypassed += s.Bypassed
	sum.BytesHit += s.BytesHit
	sum.BytesFilled += s.BytesFilled
	sum.Stale += s.Stale
	sum.BadChecksums += s.BadChecksums
	sum.Culled += s.Culled
}

func (w writer) upstreams(far map[string]Upstream) { byLabel(far, addUpstream, w.upstream) }

func (w writer) upstream(from string, s *Upstream) {
	for _, m := range []struct {
		name, help string
		kind       prometheus.ValueType
		v          uint64
	}{
		{"upstream_calls_total", "Calls to another server that an export stands for.", prometheus.CounterValue, s.Calls},
		{"upstream_retransmits_total", "Of them, those sent again.", prometheus.CounterValue, s.Retransmits},
		{"upstream_received_bytes_total", "Bytes received from it.", prometheus.CounterValue, s.BytesIn},
		{"upstream_sent_bytes_total", "Bytes sent to it.", prometheus.CounterValue, s.BytesOut},
		{"upstream_locks", "Ranges locked there.", prometheus.GaugeValue, s.Locks},
		{"upstream_cache_files", "Versions of files that the cache has something of.", prometheus.GaugeValue, s.Entries},
		{"upstream_cache_bytes", "What they take on the disk.", prometheus.GaugeValue, s.Bytes},
		{"upstream_cache_hits_total", "Reads that were answered from the cache, in all runs.", prometheus.CounterValue, s.Hits},
		{"upstream_cache_misses_total", "Reads that went to the other server, in all runs.", prometheus.CounterValue, s.Misses},
		{"upstream_cache_bypassed_total", "Of the misses, those that it answers sooner than the cache's disk.", prometheus.CounterValue, s.Bypassed},
		{"upstream_cache_hit_bytes_total", "Bytes read from the cache.", prometheus.CounterValue, s.BytesHit},
		{"upstream_cache_filled_bytes_total", "Bytes written to it.", prometheus.CounterValue, s.BytesFilled},
		{"upstream_cache_stale_total", "Versions dropped since the other server had another one.", prometheus.CounterValue, s.Stale},
		{"upstream_cache_damaged_total", "Pieces and files of the cache that were not what had been written.", prometheus.CounterValue, s.BadChecksums},
		{"upstream_cache_culled_total", "Versions removed to make room.", prometheus.CounterValue, s.Culled},
	} {
		w.send(m.name, m.help, m.kind, float64(m.v), []string{"from"}, from)
	}
}
