package daemon

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/iogate"
	"github.com/nfsbox/nfsbox/internal/server/reqlog"
	"github.com/nfsbox/nfsbox/internal/server/view"
)

// openView serves the live view, if it shall.
func (d *daemon) openView(ctx context.Context) error {
	if d.c.HTTP == "" {
		return nil
	}
	v := d.newView()
	at, err := d.openHTTP(ctx, "http", d.c.HTTP, v)
	if err != nil {
		return err
	}
	if !at.IP.IsLoopback() {
		d.log.Warn("everybody who can reach the address of http sees what this server does, and for whom", slog.String("address", at.String()))
	}
	d.slow.view = v
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	d.web.stops = append(d.web.stops, stop)
	d.web.ended.Go(func() { v.Run(running) })
	return nil
}

// newView is the live view of this server. What bounds it has are those of the
// start: a reload does not change them.
func (d *daemon) newView() *view.View {
	c, started, url := d.c, d.w.Now(), d.running().URL
	return view.New(view.Options{
		Now:    d.w.Now,
		Source: func() view.Snapshot { return d.scrape().view(c, url, d.w.Version, started) },
		Health: d.web.health,
	})
}

// view is a scrape in the words of the view.
func (s *scrape) view(c *Config, url, version string, started time.Time) view.Snapshot {
	r := &s.server.RPC
	out := view.Snapshot{
		URL: url, Version: version, Started: started,
		Conns: view.Conns{Open: r.Conns, Clients: s.replies.Clients, Accepted: r.Accepted, Evicted: r.Evicted, Refused: r.Refused},
		Gate: view.Gate{
			Kind: s.gate.Kind.String(), Reason: s.gate.Reason, Bound: s.gate.Bound, Inside: s.gate.Inside, Waiting: s.gate.Waiting, Memory: s.gate.Hits,
		},
		Limits: []view.Limit{
			{Name: "connections", Used: uint64(r.Conns), Max: uint64(c.MaxConnections)},
			{Name: "memory of requests", Bytes: true, Used: uint64(max(r.RequestBytes, 0)), Max: uint64(c.MaxRequestBytes)},
			{Name: "memory of replies", Bytes: true, Used: uint64(max(s.server.ReplyBytes, 0)), Max: uint64(c.MaxReplyBytes)},
			{Name: "remembered replies", Bytes: true, Used: uint64(max(s.replies.Bytes, 0)), Max: uint64(c.RepliesBytes)},
			{Name: "disk threads", Used: uint64(s.gate.Inside), Max: uint64(s.gate.Bound)},
		},
	}
	out.Process = view.Process{Threads: s.process.threads, CPU: s.process.cpu, Memory: s.process.memory}
	for i := range s.server.Procs {
		p := &s.server.Procs[i]
		program, name := spoken(p.Proc.String())
		out.Procs = append(out.Procs, view.Proc{
			Name: name, Program: program, Version: p.Proc.Version,
			Calls: p.Calls, Errors: p.Errors, BytesIn: p.BytesIn, BytesOut: p.BytesOut, Latency: p.Latency,
		})
	}
	s.viewAPI(&out, &c.API)
	for i := range s.gate.Exports {
		out.Gate.Lanes = append(out.Gate.Lanes, lanesOf(&s.gate.Exports[i])...)
	}
	for _, dir := range slices.Sorted(maps.Keys(s.dirs)) {
		x := s.dirs[dir]
		out.Caches = append(out.Caches, view.Cache{Name: "open files of " + dir, Used: uint64(x.Open), Max: uint64(x.MaxOpen), Hits: x.Hits, Misses: x.Misses})
	}
	if l := s.server.LocalIO; l != nil {
		out.LocalIO = &view.LocalIO{Sessions: l.Sessions, Files: l.Files, Opened: l.Opened, Revoked: l.Revoked}
		for _, n := range l.Refused {
			out.LocalIO.Refused += n
		}
	}
	return out
}

// viewAPI adds the file API to the view, if there is one.
func (s *scrape) viewAPI(out *view.Snapshot, a *API) {
	if s.api == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.api.Calls)) {
		c := s.api.Calls[name]
		out.Procs = append(out.Procs, view.Proc{
			Name: name, Program: "API", Version: 1,
			Calls: c.Time.Count, Errors: c.Errors, BytesIn: c.BytesIn, BytesOut: c.BytesOut, Latency: c.Time,
		})
	}
	out.Limits = append(out.Limits,
		view.Limit{Name: "calls of the API", Used: uint64(s.api.InProgress), Max: uint64(a.MaxCalls)},
		view.Limit{Name: "memory of the API's messages", Bytes: true, Used: uint64(max(s.api.Memory, 0)), Max: uint64(a.MaxMemory)},
		view.Limit{Name: "connections of the API", Used: uint64(max(s.api.Conns, 0)), Max: uint64(a.MaxConnections)},
	)
}

func lanesOf(x *iogate.Export) (out []view.Lane) {
	for class := range x.Lanes {
		l := &x.Lanes[class]
		lane := view.Lane{Export: x.Name, Name: iogate.Class(class).String(), Inside: l.Inside, Waiting: l.Waiting,
			Entered: l.Entered, Refused: l.Refused(), Waited: l.Waited}
		for _, n := range l.Waits {
			lane.Waits += n
		}
		out = append(out, lane)
	}
	return out
}

// spoken divides "NFSPROC3_READ" into what people say: NFS, READ.
func spoken(proc string) (program, name string) {
	program, name, ok := strings.Cut(proc, "_")
	if !ok {
		return "", proc
	}
	program, _, _ = strings.Cut(program, "PROC")
	return program, name
}

// slowCall is a slow call in the words of the view.
func slowCall(at time.Time, c *reqlog.Call) view.SlowCall {
	x := view.SlowCall{At: at, Proc: "unknown", XID: c.XID, Took: c.Took, Waited: c.Waited, Detail: c.User}
	if c.Procedure != nil {
		_, x.Proc = spoken(c.Procedure.String())
	}
	if c.Client != nil {
		x.Client = c.Client.String()
	}
	return x
}
