package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/view"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// Screen describes where Lines draws.
type Screen struct {
	Width  int // columns
	Height int // lines; 0: no limit
	Colour bool
	Zone   *time.Location // of the times of day; UTC if nil
	Look
}

// Look is what the user has asked to see. The zero Look is what there is at first.
type Look struct {
	Sort Key  // by what clients and files are sorted; 0: KeyCalls
	Skip int  // how many of their rows are left out at the top
	Help bool // show what keys do
}

// Lines draws a Frame. No line is longer than the screen is wide, or 20 columns, and there are
// no more lines than the screen is high. If there are too many rows, the longest tables are cut
// first, and then the last tables are left out.
func Lines(f *view.Frame, s Screen) []string {
	s.Width = min(max(s.Width, minWidth), maxWidth)
	if s.Zone == nil {
		s.Zone = time.UTC
	}
	out := s.head(f)
	if s.Help {
		out = append(append(out, ""), s.flow(help()...)...)
	}
	tables := slices.DeleteFunc(s.tables(f), func(t table) bool { return t.rows() == 0 })
	tables, n := choose(tables, s.Height-len(out), s.Height == 0)
	for i := range tables {
		lines := tables[i].lines(s.Width, min(n, tables[i].rows()))
		lines[0] = s.bold(lines[0])
		out = append(append(out, ""), lines...)
	}
	if s.Height > 0 && len(out) > s.Height {
		out = out[:s.Height]
	}
	return out
}

// fewRows is how many rows a table should have at least. If not all can have them, the last
// table is left out.
const fewRows = 3

// choose finds how many tables fit into a height, and how many rows each may have
// at most.
func choose(tables []table, room int, all bool) (chosen []table, rows int) {
	most := 0
	for i := range tables {
		most = max(most, tables[i].rows())
	}
	if all {
		return tables, most
	}
	for ; len(tables) > 0; tables = tables[:len(tables)-1] {
		least := fewRows
		if len(tables) == 1 {
			least = 1
		}
		for n := max(most, least); n >= least; n-- {
			if height(tables, n) <= room {
				return tables, n
			}
		}
	}
	return nil, 0
}

// height is how many lines tables take with at most n rows each: each has a heading, and an
// empty line before it.
func height(tables []table, n int) (lines int) {
	for i := range tables {
		lines += min(n, tables[i].rows()) + 2
	}
	return lines
}

func (s *Screen) head(f *view.Frame) []string {
	state := "in service"
	if !f.Healthy {
		state = cmp.Or(name(f.Health), "not in service")
	}
	clock := f.At.In(s.Zone).Format(time.TimeOnly)
	first := title(s.Width-len(clock)-1, "nfsbox", name(f.URL), name(f.Version), "up "+span(f.At.Sub(f.Started)), state)
	first += strings.Repeat(" ", s.Width-len(clock)-progress.Columns(first)) + clock
	switch {
	case s.Colour && !f.Healthy:
		first = "\x1b[31;1m" + first + "\x1b[0m"
	default:
		first = s.bold(first)
	}
	t, c, g := &f.Total, &f.Conns, &f.Gate
	out := []string{first}
	out = append(out, s.flow(
		"ops/s "+number(t.Rate), "p50 "+seconds(t.P50), "p99 "+seconds(t.P99), "sent "+rate(t.Out), "received "+rate(t.In),
		"errors/s "+number(t.Errors), "total "+count(t.Calls))...)
	disk := fmt.Sprintf("disk %d of %s, %d waiting", g.Inside, bound(false, uint64(max(g.Bound, 0))), g.Waiting)
	process := []string{fmt.Sprintf("clients %d", c.Clients), fmt.Sprintf("connections %d", c.Open)}
	if p := &f.Process; p.Threads > 0 {
		process = append(process, fmt.Sprintf("threads %d", p.Threads))
	}
	process = append(process, "cpu "+strconv.FormatFloat(f.Process.CPU, 'f', 2, 64))
	if p := &f.Process; p.Memory > 0 {
		process = append(process, "memory "+size(float64(p.Memory)))
	}
	out = append(out, s.flow(append(process, disk)...)...)
	if l := f.LocalIO; l != nil {
		out = append(out, s.flow(fmt.Sprintf("localio: sessions %d", l.Sessions), fmt.Sprintf("files lent %d", l.Files),
			"lent/s "+number(l.Opened), "in all "+count(l.Opens), "refused "+count(l.Refused), "revoked "+count(l.Revoked))...)
	}
	if len(f.Points) > 1 {
		const label = 6
		out = append(out, "", "ops/s "+spark(f.Points, s.Width-label, sum), "p99   "+spark(f.Points, s.Width-label, func(p *view.Point) float64 { return p.P99 }))
	}
	return out
}

// title is on one line what there is room for of a program, a URL, a version, how long it has been up, and
// its state. The state stays, and what there is room for of the URL.
func title(room int, program, url, version, up, state string) string {
	for _, parts := range [][]string{{program, url, version, up, state}, {program, url, up, state}, {program, url, state}} {
		text := strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "  ")
		if progress.Columns(text) <= room {
			return text
		}
	}
	if url = cut(url, room-progress.Columns(state)-gap); url != "" {
		state = url + strings.Repeat(" ", gap) + state
	}
	return cut(state, room)
}

// flow puts parts on as few lines as fit them.
func (s *Screen) flow(parts ...string) (lines []string) {
	line := ""
	for _, p := range parts {
		p = cut(p, s.Width)
		switch {
		case line == "":
			line = p
		case progress.Columns(line)+2+progress.Columns(p) <= s.Width:
			line += "  " + p
		default:
			lines, line = append(lines, line), p
		}
	}
	return append(lines, line)
}

func (s *Screen) bold(line string) string {
	if s.Colour {
		return "\x1b[1m" + line + "\x1b[0m"
	}
	return line
}

// tables are a Frame's tables, the most important first.
func (s *Screen) tables(f *view.Frame) []table {
	return []table{s.clients(f), s.files(f), procedures(f), s.slow(f), lanes(f), limits(f), caches(f), jobs(f)}
}

// sorted marks the heading of the column by which rows are sorted.
func (s *Screen) sorted(by Key, head string) string {
	if cmp.Or(s.Sort, KeyCalls) == by {
		return head + "▾"
	}
	return head
}

// clients lists those first that do most, as the user has asked.
func (s *Screen) clients(f *view.Frame) table {
	t := table{[]column{
		{head: "CLIENT", left: true}, {head: "USER", left: true, spare: true}, {head: s.sorted(KeyCalls, "OPS/S")}, {head: s.sorted(KeyBytes, "BYTES/S")},
		{head: s.sorted(KeyLatency, "P99")}, {head: s.sorted(KeyFlight, "FLIGHT")}, {head: "LAST FILE", left: true, spare: true},
	}}
	rows := slices.Clone(f.Clients)
	slices.SortStableFunc(rows, func(a, b view.ClientFrame) int {
		switch s.Sort {
		case KeyBytes:
			return cmp.Compare(b.In+b.Out, a.In+a.Out)
		case KeyLatency:
			return cmp.Compare(b.P99, a.P99)
		case KeyFlight:
			return cmp.Compare(b.InFlight, a.InFlight)
		}
		return cmp.Compare(b.Rate, a.Rate)
	})
	for _, c := range rows[min(s.Skip, len(rows)):] {
		t.add(name(c.Client), name(c.User), number(c.Rate), rate(c.In+c.Out), seconds(c.P99), strconv.Itoa(c.InFlight), name(c.File))
	}
	return t
}

func (s *Screen) files(f *view.Frame) table {
	t := table{[]column{
		{head: "FILE", left: true}, {head: s.sorted(KeyCalls, "OPS/S")}, {head: s.sorted(KeyBytes, "BYTES/S")}, {head: s.sorted(KeyLatency, "P99")},
		{head: "LAST CLIENT", left: true, spare: true},
	}}
	rows := slices.Clone(f.Files)
	slices.SortStableFunc(rows, func(a, b view.FileFrame) int {
		switch s.Sort {
		case KeyBytes:
			return cmp.Compare(b.In+b.Out, a.In+a.Out)
		case KeyLatency:
			return cmp.Compare(b.P99, a.P99)
		}
		return cmp.Compare(b.Rate, a.Rate)
	})
	for _, x := range rows[min(s.Skip, len(rows)):] {
		t.add(name(x.File), number(x.Rate), rate(x.In+x.Out), seconds(x.P99), name(x.Client))
	}
	return t
}

// procedures lists the busiest first.
func procedures(f *view.Frame) table {
	t := table{[]column{
		{head: "PROCEDURE", left: true}, {head: "OPS/S"}, {head: "P50"}, {head: "P99"}, {head: "ERRORS/S", spare: true}, {head: "TOTAL", spare: true},
		{head: "MAX", spare: true}, {head: "SENT", spare: true}, {head: "RECEIVED", spare: true},
	}}
	rows := slices.Clone(f.Procs)
	slices.SortStableFunc(rows, func(a, b view.ProcFrame) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(b.Calls, a.Calls))
	})
	for i := range rows {
		p := &rows[i]
		t.add(name(p.Program+" "+p.Name), number(p.Rate), seconds(p.P50), seconds(p.P99), number(p.Errors), count(p.Calls), seconds(p.Max), rate(p.Out), rate(p.In))
	}
	return t
}

func (s *Screen) slow(f *view.Frame) table {
	t := table{[]column{
		{head: "SLOW", left: true}, {head: "TOOK"}, {head: "WAITED", spare: true}, {head: "AT", spare: true},
		{head: "CLIENT", left: true}, {head: "FILE", left: true, spare: true}, {head: "XID", spare: true}, {left: true, spare: true},
	}}
	for i := range f.Slow {
		c, xid := &f.Slow[i], ""
		if c.XID != 0 {
			xid = strconv.FormatUint(uint64(c.XID), 16)
		}
		t.add(name(c.Proc), seconds(c.Took), seconds(c.Waited), c.At.In(s.Zone).Format(time.TimeOnly), name(c.Client), name(c.Path), xid, name(c.Detail))
	}
	return t
}

func lanes(f *view.Frame) table {
	t := table{[]column{
		{head: "EXPORT", left: true}, {head: "LANE", left: true}, {head: "INSIDE"}, {head: "WAITING"}, {head: "ENTERED/S", spare: true},
		{head: "REFUSED/S", spare: true}, {head: "WAITS/S", spare: true}, {head: "FOR", spare: true},
	}}
	for i := range f.Gate.Lanes {
		l := &f.Gate.Lanes[i]
		t.add(name(l.Export), name(l.Name), strconv.Itoa(l.Inside), strconv.Itoa(l.Waiting), number(l.Entered), number(l.Refused), number(l.Waits), seconds(l.Wait))
	}
	return t
}

func limits(f *view.Frame) table {
	t := table{[]column{{head: "LIMIT", left: true}, {head: "USED"}, {head: "OF"}, {left: true, spare: true}}}
	for i := range f.Limits {
		l := &f.Limits[i]
		t.add(name(l.Name), amount(l.Bytes, l.Used), bound(l.Bytes, l.Max), meter(l.Used, l.Max))
	}
	return t
}

func caches(f *view.Frame) table {
	t := table{[]column{{head: "CACHE", left: true}, {head: "HITS/S"}, {head: "MISSES/S"}, {head: "USED", spare: true}, {head: "OF", spare: true}, {left: true, spare: true}}}
	for i := range f.Caches {
		c := &f.Caches[i]
		t.add(name(c.Name), number(c.Hits), number(c.Misses), amount(c.Bytes, c.Used), bound(c.Bytes, c.Max), meter(c.Used, c.Max))
	}
	return t
}

func jobs(f *view.Frame) table {
	t := table{[]column{{head: "JOB", left: true}, {head: "STATE", left: true}, {head: "ITEMS"}, {head: "OF"}, {head: "FAILED"}, {head: "DATA", spare: true}}}
	for i := range f.Jobs {
		j := &f.Jobs[i]
		total := "?"
		if j.Total > 0 {
			total = count(j.Total)
		}
		t.add(name(j.Name), name(j.State), count(j.Items), total, count(j.Failed), size(float64(j.Bytes)))
	}
	return t
}

// meter draws the used part of a limit as a bar.
func meter(used, limit uint64) string {
	const width = 20
	if limit == 0 {
		return ""
	}
	n := int(float64(min(used, limit)) / float64(limit) * width)
	return "[" + strings.Repeat("#", n) + strings.Repeat(" ", width-n) + "]"
}
