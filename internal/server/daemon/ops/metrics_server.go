package ops

import (
	"maps"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nfsbox/nfsbox/internal/server/iogate"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
)

// others is the label of what has none of its own; see maxLabels.
const others = "others"

func (w writer) connections(s *Scrape) {
	r := &s.Server.RPC
	w.gauge("connections", "Connections that are open.", float64(r.Conns))
	w.count("connections_accepted_total", "Connections accepted.", r.Accepted)
	w.count("connections_evicted_total", "Connections closed to make room for others.", r.Evicted)
	w.count("connections_refused_total", "Connections closed at once, for want of room.", r.Refused)
	w.gauge("clients", "Clients known, by address.", float64(s.Replies.Clients))
	w.count("rpc_denied_total", "Calls whose credential was denied.", r.Denied)
	w.count("rpc_failed_total", "Calls that RPC could not accept.", r.Failed)
	w.count("rpc_dropped_total", "Calls that got no reply.", r.Dropped)
	w.count("rpc_panics_total", "Calls that ended in a fault of the server.", r.Panics)
	w.count("received_bytes_total", "Bytes received.", r.BytesIn)
	w.count("sent_bytes_total", "Bytes sent.", r.BytesOut)
	w.gauge("request_bytes", "Memory taken by requests.", float64(r.RequestBytes))
	w.gauge("reply_bytes", "Memory taken by data on its way to clients.", float64(s.Server.ReplyBytes))
	w.count("nfs_errors_total", "Calls of NFS answered with an error.", s.Server.Errors)
}

func (w writer) procedures(procs []oncrpc.ProcServerStats) {
	label := []string{"procedure", "version"}
	for i := range procs {
		p := &procs[i]
		values := []string{p.Proc.Name, strconv.FormatUint(uint64(p.Proc.Version), 10)}
		for _, m := range []struct {
			name, help string
			v          uint64
		}{
			{"rpc_calls_total", "Calls.", p.Calls},
			{"rpc_errors_total", "Calls that failed in RPC.", p.Errors},
			{"rpc_received_bytes_total", "Bytes of requests.", p.BytesIn},
			{"rpc_sent_bytes_total", "Bytes of replies.", p.BytesOut},
		} {
			w.send(m.name, m.help, prometheus.CounterValue, float64(m.v), label, values...)
		}
		w.histogram("rpc_duration_seconds", "Time from a request's arrival to its reply.", secondsOf(p.Latency), label, values...)
	}
}

func (w writer) replyCache(r *oncrpc.ReplyCacheStats) {
	w.gauge("replies_remembered", "Replies remembered.", float64(r.Replies))
	w.gauge("replies_remembered_bytes", "Memory that they take.", float64(r.Bytes))
	w.count("replies_repeated_total", "Calls answered from memory.", r.Hits)
	w.count("replies_joined_total", "Calls that were under way already when they came again.", r.Joined)
	w.count("replies_evicted_total", "Replies forgotten to make room.", r.Evicted)
	w.count("replies_evicted_young_total", "Of them, those forgotten too early, for want of memory.", r.EvictedYoung)
}

func (w writer) locks(l *nfsserver.LockStats) {
	if l == nil {
		return
	}
	w.gauge("lock_clients", "Clients with locks.", float64(l.Clients))
	w.gauge("locks", "Ranges locked.", float64(l.Locks))
	w.gauge("locks_queued", "Locks that wait.", float64(l.Queued))
	w.count("locks_granted_total", "Locks given at once.", l.Granted)
	w.count("locks_wakened_total", "Locks given after a wait.", l.Wakened)
	w.count("locks_denied_total", "Locks refused because of another's.", l.Denied)
	w.count("locks_abandoned_total", "Locks given that no client has acknowledged.", l.Abandoned)
	grace := 0.0
	if l.Grace {
		grace = 1
	}
	w.gauge("locks_grace", "1 while locks can only be claimed back.", grace)
}

func (w writer) lanes(g *iogate.Snapshot) {
	w.send("gate_info", "How work reaches the disk.", prometheus.GaugeValue, 1,
		[]string{"kind", "asked", "reason"}, g.Kind.String(), g.Asked.String(), g.Reason)
	w.gauge("gate_threads_limit", "Threads that the disk may hold.", float64(g.Bound))
	w.gauge("gate_threads", "Threads of the gate's own.", float64(g.Threads))
	w.count("gate_reads_from_memory_total", "Reads that found all in memory, without a place in the gate.", g.Hits)
	label := []string{"export", "lane"}
	var waits [iogate.Classes]iogate.Lane
	for name, lanes := range labelled(g.Exports) {
		for class := range lanes {
			l, values := &lanes[class], []string{name, iogate.Class(class).String()}
			w.send("gate_inside", "Calls at the disk.", prometheus.GaugeValue, float64(l.Inside), label, values...)
			w.send("gate_waiting", "Calls that wait for the disk.", prometheus.GaugeValue, float64(l.Waiting), label, values...)
			w.send("gate_entered_total", "Calls let to the disk.", prometheus.CounterValue, float64(l.Entered), label, values...)
			w.send("gate_refused_total", "Calls told to come back.", prometheus.CounterValue, float64(l.Refused()), label, values...)
			addLane(&waits[class], l)
		}
	}
	for class := range waits {
		w.histogram("gate_wait_seconds", "Waits for the disk, of those who had to wait.", waitsOf(&waits[class]),
			[]string{"lane"}, iogate.Class(class).String())
	}
}

// labelled are the lanes of the exports that have a label, and of the others
// together.
func labelled(exports []iogate.Export) map[string]*[iogate.Classes]iogate.Lane {
	out := make(map[string]*[iogate.Classes]iogate.Lane)
	for i := range exports {
		name := exports[i].Name
		if i >= maxLabels {
			name = others
		}
		if out[name] == nil {
			out[name] = new([iogate.Classes]iogate.Lane)
		}
		for class := range exports[i].Lanes {
			addLane(&out[name][class], &exports[i].Lanes[class])
		}
	}
	return out
}

func addLane(sum, l *iogate.Lane) {
	sum.Inside += l.Inside
	sum.Waiting += l.Waiting
	sum.Entered += l.Entered
	sum.Full += l.Full
	sum.Late += l.Late
	sum.Waited += l.Waited
	for i, n := range l.Waits {
		sum.Waits[i] += n
	}
}

func waitsOf(l *iogate.Lane) histogram {
	h := histogram{sum: l.Waited.Seconds(), buckets: make(map[float64]uint64)}
	for i, n := range l.Waits {
		h.n += n
		if i < len(l.Waits)-1 { // the last one has no bound
			h.buckets[iogate.WaitBound(i).Seconds()] = h.n
		}
	}
	return h
}

func (w writer) directories(dirs map[string]localfs.Snapshot) {
	byLabel(dirs, addDirectory, w.directory)
}

// byLabel sends each of all by its label. Those beyond maxLabels are added up, and sent as others.
func byLabel[T any](all map[string]T, add func(sum, s *T), send func(label string, s *T)) {
	var rest T
	for i, label := range slices.Sorted(maps.Keys(all)) {
		s := all[label]
		if i < maxLabels {
			send(label, &s)
			continue
		}
		add(&rest, &s)
	}
	if len(all) > maxLabels {
		send(others, &rest)
	}
}

func (w writer) directory(dir string, s *localfs.Snapshot) {
	for _, m := range []struct {
		name, help string
		kind       prometheus.ValueType
		v          float64
	}{
		{"descriptors", "Descriptors of files kept open.", prometheus.GaugeValue, float64(s.Open)},
		{"descriptors_limit", "How many there may be.", prometheus.GaugeValue, float64(s.MaxOpen)},
		{"descriptors_dirty", "Of them, those with data that is not on the disk.", prometheus.GaugeValue, float64(s.Dirty)},
		{"descriptor_hits_total", "Files found open.", prometheus.CounterValue, float64(s.Hits)},
		{"descriptor_misses_total", "Files that had to be opened.", prometheus.CounterValue, float64(s.Misses)},
		{"descriptors_evicted_total", "Descriptors closed to make room for others.", prometheus.CounterValue, float64(s.Evicted)},
		{"descriptors_idle_total", "Descriptors closed because nobody used them.", prometheus.CounterValue, float64(s.Idle)},
		{"syncs_total", "Syncs of files and directories.", prometheus.CounterValue, float64(s.Syncs)},
		{"syncs_shared_total", "Calls content with a sync that others had asked for.", prometheus.CounterValue, float64(s.Shared)},
		{"verifier_changes_total", "Failed syncs, after which clients send their data again.", prometheus.CounterValue, float64(s.Verifiers)},
		{"disk_busy_total", "Calls turned away at the gate.", prometheus.CounterValue, float64(s.Busy)},
	} {
		w.send(m.name, m.help, m.kind, m.v, []string{"dir"}, dir)
	}
}

func (w writer) localIO(s *nfsserver.LocalIOStats) {
	if s == nil {
		return
	}
	w.gauge("localio_sessions", "Clients on this host that read and write without the network.", float64(s.Sessions))
	w.gauge("localio_files", "Descriptors that they have.", float64(s.Files))
	w.gauge("localio_strangers", "Connections to the socket whose client is not known yet.", float64(s.Strangers))
	w.count("localio_strangers_crowded_total", "Of them, those closed to make room for others.", s.Crowded)
	w.count("localio_sessions_total", "Clients that have begun to do so.", s.Bound)
	w.count("localio_sessions_refused_total", "Clients that could not, for there were too many.", s.Full)
	w.count("localio_sessions_broken_total", "Of them, those cut off for what they sent, or did not.", s.Broken)
	w.count("localio_nonces_unknown_total", "Clients that have asked and are not on this host, or not nfsbox.", s.Unknown)
	const name, help = "localio_opens_total", "Files that clients asked to have, by what became of it: ok, or why not."
	w.send(name, help, prometheus.CounterValue, float64(s.Opened), []string{"why"}, "ok")
	for why, n := range s.Refused {
		w.send(name, help, prometheus.CounterValue, float64(n), []string{"why"}, why)
	}
	w.count("localio_revoked_total", "Descriptors that were taken back.", s.Revoked)
}

func (w writer) logs(lost logLosses) {
	const name, help = "log_dropped_total", "Lines that a log has lost: its file could not be written, or they were too many."
	w.send(name, help, prometheus.CounterValue, float64(lost.own), []string{"log"}, "server")
	w.send(name, help, prometheus.CounterValue, float64(lost.requests), []string{"log"}, "requests")
}
