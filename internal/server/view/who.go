package view

import (
	"cmp"
	"slices"
)

// whoAndWhat fills in the busiest clients and files. It is called by one goroutine at a time.
func (v *View) whoAndWhat(f *Frame, iv *interval) {
	clients, files := v.busy.turn(iv.seconds)
	names := make(map[string]string, len(v.names))
	f.Clients, f.Files = v.clientRows(clients, iv, f, names), v.fileRows(files, names)
	v.names = names
}

// nameOf is the name of a file. While it is not known, that is the name that the last Frame
// had, if any. The names of this Frame are collected in names.
func (v *View) nameOf(file string, names map[string]string) string {
	name, ok := v.o.NameFile(file)
	if old := v.names[file]; !ok && old != "" {
		name, ok = old, true
	}
	if ok {
		names[file] = name
	}
	return short(name)
}

// clientRows joins what is counted of connections and what a sample says.
func (v *View) clientRows(sampled []heavyRow, iv *interval, f *Frame, names map[string]string) []ClientFrame {
	was := index(iv.was.Clients, func(c *Client) string { return c.Name })
	seen := index(sampled, func(r *heavyRow) string { return r.name })
	rows := make([]ClientFrame, 0, len(iv.now.Clients))
	counted := make(map[string]bool, len(iv.now.Clients))
	for i := range iv.now.Clients {
		c := &iv.now.Clients[i]
		w, s := was(c.Name), seen(c.Name)
		counted[c.Name] = true
		rows = append(rows, ClientFrame{
			Client: c.Name, User: cmp.Or(c.User, s.user), Conns: c.Conns, InFlight: c.InFlight, Rate: iv.rate(w.Calls, c.Calls),
			In: iv.rate(w.BytesIn, c.BytesIn), Out: iv.rate(w.BytesOut, c.BytesOut), P99: s.p99, File: s.other,
		})
	}
	for _, s := range sampled {
		if !counted[s.name] {
			rows = append(rows, ClientFrame{Client: s.name, User: s.user, Rate: s.calls, In: s.in, Out: s.out, P99: s.p99, File: s.other})
		}
	}
	slices.SortFunc(rows, func(a, b ClientFrame) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(b.In+b.Out, a.In+a.Out), cmp.Compare(a.Client, b.Client))
	})
	all := len(rows)
	rows = foremost(rows, maxClients, func(c *ClientFrame) float64 { return c.Rate }, func(c *ClientFrame) float64 { return c.In + c.Out },
		func(c *ClientFrame) float64 { return float64(c.InFlight) }, func(c *ClientFrame) float64 { return c.P99 })
	f.Left += all - len(rows)
	for i := range rows {
		c := &rows[i]
		c.Client, c.User = short(c.Client), short(c.User)
		if c.File != "" {
			c.File = v.nameOf(c.File, names)
		}
	}
	return rows
}

// fileRows are files that were used of late.
func (v *View) fileRows(sampled []heavyRow, names map[string]string) []FileFrame {
	rows := make([]FileFrame, 0, maxFiles)
	for _, s := range sampled {
		rows = append(rows, FileFrame{File: s.name, Client: short(s.other), Rate: s.calls, In: s.in, Out: s.out, P99: s.p99})
	}
	slices.SortFunc(rows, func(a, b FileFrame) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(b.In+b.Out, a.In+a.Out), cmp.Compare(a.File, b.File))
	})
	rows = foremost(rows, maxFiles, func(c *FileFrame) float64 { return c.Rate }, func(c *FileFrame) float64 { return c.In + c.Out },
		func(c *FileFrame) float64 { return c.P99 })
	for i := range rows {
		rows[i].File = v.nameOf(rows[i].File, names)
	}
	return rows
}
