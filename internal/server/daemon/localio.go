package daemon

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nfsbox/nfsbox/nfsserver"
)

// What Config.LocalIO may say.
const (
	localIOOn      = "on"      // where the directory for its socket can be had
	localIOOff     = "off"     // never
	localIOTrusted = "trusted" // and every process that is let in may do with descriptors what they allow
)

// localIO says how clients of this host are to find the server; nil: not at all.
func (d *daemon) localIO() (*nfsserver.LocalIO, error) {
	if d.c.LocalIO == localIOOff {
		return nil, nil
	}
	o := &nfsserver.LocalIO{Trusted: d.c.LocalIO == localIOTrusted}
	d.w.Rand(o.UUID[:])
	if d.c.LocalIODir == "" {
		return o, nil
	}
	var err error
	o.Dir, err = filepath.Abs(d.c.LocalIODir)
	return o, err
}

// withoutLocalIO makes the server without local I/O where that was the trouble,
// unless somebody has named its directory, and so relies on it. All else works
// without, and few hosts have both client and server.
func (d *daemon) withoutLocalIO(o nfsserver.Options, why error) (err error) {
	if d.c.LocalIODir != "" {
		return fmt.Errorf("%w; name another localio-dir, or switch localio off", why)
	}
	o.LocalIO = nil
	if d.srv, err = nfsserver.New(o); err != nil {
		return err // which was the trouble
	}
	d.log.Info("no local I/O: clients of this host read and write over the network, too", slog.Any("why", why))
	return nil
}

// localIO are the metrics of LOCALIO, if it is there.
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
