package ops

import (
	"maps"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/server/iogate"
	"github.com/nfsbox/nfsbox/internal/server/view"
)

// view is a scrape in the words of the view.
func (s *Scrape) view(c *config.Config, url, version string, started time.Time) view.Snapshot {
	r := &s.Server.RPC
	out := view.Snapshot{
		URL: url, Version: version, Started: started,
		Conns: view.Conns{Open: r.Conns, Clients: s.Replies.Clients, Accepted: r.Accepted, Evicted: r.Evicted, Refused: r.Refused},
		Gate: view.Gate{
			Kind: s.Gate.Kind.String(), Reason: s.Gate.Reason, Bound: s.Gate.Bound, Inside: s.Gate.Inside, Waiting: s.Gate.Waiting, Memory: s.Gate.Hits,
		},
		Limits: []view.Limit{
			{Name: "connections", Used: uint64(r.Conns), Max: uint64(c.MaxConnections)},
			{Name: "memory of requests", Bytes: true, Used: uint64(max(r.RequestBytes, 0)), Max: uint64(c.MaxRequestBytes)},
			{Name: "memory of replies", Bytes: true, Used: uint64(max(s.Server.ReplyBytes, 0)), Max: uint64(c.MaxReplyBytes)},
			{Name: "remembered replies", Bytes: true, Used: uint64(max(s.Replies.Bytes, 0)), Max: uint64(c.RepliesBytes)},
			{Name: "disk threads", Used: uint64(s.Gate.Inside), Max: uint64(s.Gate.Bound)},
		},
	}
	out.Process = view.Process{Threads: s.process.threads, CPU: s.process.cpu, Memory: s.process.memory}
	for i := range s.Server.Procs {
		p := &s.Server.Procs[i]
		program, name := spoken(p.Proc.String())
		out.Procs = append(out.Procs, view.Proc{
			Name: name, Program: program, Version: p.Proc.Version,
			Calls: p.Calls, Errors: p.Errors, BytesIn: p.BytesIn, BytesOut: p.BytesOut, Latency: p.Latency,
		})
	}
	s.viewAPI(&out, &c.API)
	for i := range s.Gate.Exports {
		out.Gate.Lanes = append(out.Gate.Lanes, lanesOf(&s.Gate.Exports[i])...)
	}
	for _, dir := range slices.Sorted(maps.Keys(s.dirs)) {
		x := s.dirs[dir]
		out.Caches = append(out.Caches, view.Cache{Name: "open files of " + dir, Used: uint64(x.Open), Max: uint64(x.MaxOpen), Hits: x.Hits, Misses: x.Misses})
	}
	if l := s.Server.LocalIO; l != nil {
		out.LocalIO = &view.LocalIO{Sessions: l.Sessions, Files: l.Files, Opened: l.Opened, Revoked: l.Revoked}
		for _, n := range l.Refused {
			out.LocalIO.Refused += n
		}
	}
	return out
}

func (s *Scrape) viewAPI(out *view.Snapshot, a *config.API) {
	if s.API == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.API.Calls)) {
		c := s.API.Calls[name]
		out.Procs = append(out.Procs, view.Proc{
			Name: name, Program: "API", Version: 1,
			Calls: c.Time.Count, Errors: c.Errors, BytesIn: c.BytesIn, BytesOut: c.BytesOut, Latency: c.Time,
		})
	}
	out.Limits = append(out.Limits,
		view.Limit{Name: "calls of the API", Used: uint64(s.API.InProgress), Max: uint64(a.MaxCalls)},
		view.Limit{Name: "memory of the API's messages", Bytes: true, Used: uint64(max(s.API.Memory, 0)), Max: uint64(a.MaxMemory)},
		view.Limit{Name: "searches of the API", Used: uint64(s.API.Searches), Max: uint64(a.MaxSearches)},
		view.Limit{Name: "connections of the API", Used: uint64(max(s.API.Conns, 0)), Max: uint64(a.MaxConnections)},
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
