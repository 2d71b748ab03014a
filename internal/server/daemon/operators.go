package daemon

import (
	"context"
	"os"

	"github.com/nfsbox/nfsbox/internal/server/daemon/ops"
)

func (d *daemon) openWeb(ctx context.Context) error {
	return d.web.Open(ctx, ops.WebOptions{
		Config: d.c, Version: d.w.Version, URL: d.running().URL, Now: d.w.Now, Log: d.log, Logs: d.logs,
		Source: d.scrape, Listen: listenTCP, Client: d.client, Clients: d.srv.Clients,
	})
}

// openControl makes the socket by which the operator lists clients and drops them.
func (d *daemon) openControl() {
	d.control = ops.OpenControl(ops.ControlOptions{
		Server: d.srv, Files: d.table.As(nil), Folder: d.own, Log: d.log, Frame: d.web.Frame,
		Of: ops.ControlledBy{PID: os.Getpid(), URL: d.running().URL, Version: d.w.Version},
	})
}

// scrape is what all parts of the server have counted by now.
func (d *daemon) scrape() *ops.Scrape {
	s := &ops.Scrape{Server: d.srv.Stats(), Replies: d.replies.Stats(), Gate: d.gate.Snapshot(), Leaving: int(d.sites.left.Load())}
	for site, x := range d.sites.now() {
		if x.local != nil {
			s.AddDirectory(site.dir, x.local.Snapshot())
		}
	}
	s.API, s.Store = d.api.snapshots()
	return s
}
