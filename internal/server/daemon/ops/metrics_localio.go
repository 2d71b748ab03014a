package ops

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nfsbox/nfsbox/nfsserver"
)

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
