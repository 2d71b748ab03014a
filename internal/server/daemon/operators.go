package daemon

import (
	"context"
	"os"

	"github.com/nfsbox/nfsbox"
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
		if far := x.far.Load(); far != nil {
			s.AddUpstream(site.from, upstreamOf(far.Stats()))
		}
	}
	s.API, s.Store = d.api.snapshots()
	return s
}

// upstreamOf is what is shown of a client of another server.
func upstreamOf(s nfsbox.Stats) ops.Upstream {
	return ops.Upstream{
		Calls: s.RPCs, Retransmits: s.Retransmits, BytesIn: s.BytesIn, BytesOut: s.BytesOut, Locks: uint64(max(s.Locks.Locks, 0)),
		Entries: uint64(max(s.Cache.Entries, 0)), Bytes: uint64(max(s.Cache.Bytes, 0)), Hits: s.Cache.Hits, Misses: s.Cache.Misses,
		BytesHit: s.Cache.BytesHit, BytesFilled: s.Cache.BytesFilled, Stale: s.Cache.Stale, BadChecksums: s.Cache.BadChecksums + s.Cache.Damaged,
		Culled: s.Cache.Culled, Bypassed: s.Cache.Bypassed,
	}
}
