package view

import (
	"cmp"
	"time"
	"unicode/utf8"

	"github.com/nfsbox/nfsbox/internal/base/metric"
)

// sample is a Snapshot and when it was taken.
type sample struct {
	Snapshot
	at time.Time
}

// interval turns what two samples have counted into rates.
type interval struct {
	was, now *sample
	seconds  float64 // 0: there are no rates
}

func between(was, now *sample) interval {
	iv := interval{was: was, now: now}
	if was.Started.Equal(now.Started) {
		iv.seconds = max(now.at.Sub(was.at).Seconds(), 0)
	}
	return iv
}

// since is how much has been added to a total. If it is less than before, it was reset,
// and all of it came since.
func since(was, now uint64) uint64 {
	if now < was {
		return now
	}
	return now - was
}

func (iv *interval) rate(was, now uint64) float64 { return iv.a(float64(since(was, now))) }

// a is n a second.
func (iv *interval) a(n float64) float64 {
	if iv.seconds == 0 {
		return 0
	}
	return n / iv.seconds
}

// frame has all that an interval says, without what View adds.
func (iv *interval) frame() *Frame {
	s := &iv.now.Snapshot
	f := &Frame{ // a table without rows is [], not null
		Procs: []ProcFrame{}, Limits: []LimitFrame{}, Caches: []CacheFrame{}, Jobs: []JobFrame{}, Gate: GateFrame{Lanes: []LaneFrame{}},
		Format: Format, URL: short(s.URL), Version: short(s.Version), Started: s.Started.UTC(), At: iv.now.at.UTC(), Interval: iv.seconds,
		Process: ProcessFrame{Threads: s.Process.Threads, Memory: s.Process.Memory},
		Conns: ConnsFrame{
			Open: s.Conns.Open, Clients: s.Conns.Clients, Evicted: s.Conns.Evicted, Refused: s.Conns.Refused,
			Accepted: iv.rate(iv.was.Conns.Accepted, s.Conns.Accepted),
		},
	}
	f.Process.CPU = iv.a(max(s.Process.CPU-iv.was.Process.CPU, 0).Seconds())
	iv.procs(f)
	iv.gate(f)
	iv.localIO(f)
	for _, l := range upTo(s.Limits, maxLimits, f) {
		f.Limits = append(f.Limits, LimitFrame{Name: short(l.Name), Bytes: l.Bytes, Used: l.Used, Max: l.Max})
	}
	iv.caches(f)
	for _, j := range upTo(s.Jobs, maxJobs, f) {
		f.Jobs = append(f.Jobs, JobFrame{
			Name: short(j.Name), State: short(j.State), Items: j.Items, Total: j.Total, Bytes: j.Bytes, Failed: j.Failed,
		})
	}
	return f
}

// procKey tells a procedure from others.
type procKey struct {
	program, name string
	version       uint32
}

func (p *Proc) key() procKey { return procKey{p.Program, p.Name, p.Version} }

// together adds up rows of the same procedure. It does not change the Snapshot's rows.
func together(procs []Proc) []Proc {
	out, at := make([]Proc, 0, len(procs)), make(map[procKey]int, len(procs))
	for i := range procs {
		p := procs[i]
		j, ok := at[p.key()]
		if !ok {
			at[p.key()] = len(out)
			out = append(out, p)
			continue
		}
		o := &out[j]
		o.Calls, o.Errors, o.BytesIn, o.BytesOut = o.Calls+p.Calls, o.Errors+p.Errors, o.BytesIn+p.BytesIn, o.BytesOut+p.BytesOut
		var h metric.Snapshot
		h.Add(o.Latency)
		h.Add(p.Latency)
		o.Latency = &h
	}
	return out
}

// procs fills in the procedures and their sum.
func (iv *interval) procs(f *Frame) {
	was := index(iv.was.Procs, (*Proc).key)
	var all metric.Snapshot
	for i := range iv.now.Procs {
		p := &iv.now.Procs[i]
		if p.Calls == 0 {
			continue
		}
		w := was(p.key())
		row := ProcFrame{
			Name: short(p.Name), Program: short(p.Program), Version: p.Version, Calls: p.Calls,
			Rate: iv.rate(w.Calls, p.Calls), Errors: iv.rate(w.Errors, p.Errors),
			In: iv.rate(w.BytesIn, p.BytesIn), Out: iv.rate(w.BytesOut, p.BytesOut),
		}
		if p.Latency != nil {
			row.Max = seconds(p.Latency.Max)
		}
		if iv.seconds > 0 {
			h := recent(w.Latency, p.Latency)
			row.P50, row.P99 = h.Duration(0.5).Seconds(), h.Duration(0.99).Seconds()
			all.Add(h)
		}
		t := &f.Total
		t.Calls, t.Rate, t.Errors = t.Calls+p.Calls, t.Rate+row.Rate, t.Errors+row.Errors
		t.In, t.Out = t.In+row.In, t.Out+row.Out
		f.Procs = append(f.Procs, row)
	}
	f.Total.P50, f.Total.P99 = all.Duration(0.5).Seconds(), all.Duration(0.99).Seconds()
	f.Procs = upTo(f.Procs, maxProcs, f)
}

// recent is what a histogram has counted since was; nil if there is none.
func recent(was, now *metric.Snapshot) *metric.Snapshot {
	if now == nil {
		return nil
	}
	h := *now
	if was != nil && now.Count >= was.Count { // else it began again
		h.Sub(was)
	}
	return &h
}

// laneKey tells a lane from others.
type laneKey struct{ export, name string }

func (l *Lane) key() laneKey { return laneKey{l.Export, l.Name} }

// gate fills in the way to the disk. Lanes beyond maxLanes are added up by their
// names.
func (iv *interval) gate(f *Frame) {
	g := &iv.now.Gate
	f.Gate.Kind, f.Gate.Reason, f.Gate.Bound = short(g.Kind), short(g.Reason), g.Bound
	f.Gate.Inside, f.Gate.Waiting, f.Gate.Memory = g.Inside, g.Waiting, iv.rate(iv.was.Gate.Memory, g.Memory)
	was := index(iv.was.Gate.Lanes, (*Lane).key)
	rest := make(map[string]int) // by name, where its sum stands
	for i := range g.Lanes {
		l := &g.Lanes[i]
		if l.Entered+l.Refused == 0 && l.Inside+l.Waiting == 0 {
			continue
		}
		row := iv.lane(was(l.key()), l)
		if len(f.Gate.Lanes) < maxLanes {
			f.Gate.Lanes = append(f.Gate.Lanes, row)
			continue
		}
		at, ok := rest[row.Name]
		switch {
		case ok:
			f.Gate.Lanes[at].add(&row)
		case len(rest) < maxLanes:
			row.Export, rest[row.Name] = others, len(f.Gate.Lanes)
			f.Gate.Lanes = append(f.Gate.Lanes, row)
		default:
			f.Left++
		}
	}
}

func (iv *interval) lane(was, l *Lane) LaneFrame {
	row := LaneFrame{
		Export: short(l.Export), Name: short(l.Name), Inside: l.Inside, Waiting: l.Waiting,
		Entered: iv.rate(was.Entered, l.Entered), Refused: iv.rate(was.Refused, l.Refused), Waits: iv.rate(was.Waits, l.Waits),
	}
	if n := since(was.Waits, l.Waits); n > 0 && iv.seconds > 0 {
		row.Wait = time.Duration(since(uint64(was.Waited), uint64(l.Waited))).Seconds() / float64(n)
	}
	return row
}

// add adds another lane. The mean wait becomes that of all waits of both.
func (l *LaneFrame) add(o *LaneFrame) {
	if waits := l.Waits + o.Waits; waits > 0 {
		l.Wait = (l.Wait*l.Waits + o.Wait*o.Waits) / waits
	}
	l.Inside, l.Waiting = l.Inside+o.Inside, l.Waiting+o.Waiting
	l.Entered, l.Refused, l.Waits = l.Entered+o.Entered, l.Refused+o.Refused, l.Waits+o.Waits
}

func (iv *interval) localIO(f *Frame) {
	l := iv.now.LocalIO
	if l == nil {
		return
	}
	was := cmp.Or(iv.was.LocalIO, &LocalIO{})
	f.LocalIO = &LocalIOFrame{
		Sessions: l.Sessions, Files: l.Files, Opened: iv.rate(was.Opened, l.Opened),
		Opens: l.Opened, Refused: l.Refused, Revoked: l.Revoked,
	}
}

func (iv *interval) caches(f *Frame) {
	was := index(iv.was.Caches, func(c *Cache) string { return c.Name })
	for _, c := range upTo(iv.now.Caches, maxCaches, f) {
		w := was(c.Name)
		f.Caches = append(f.Caches, CacheFrame{
			Name: short(c.Name), Bytes: c.Bytes, Used: c.Used, Max: c.Max,
			Hits: iv.rate(w.Hits, c.Hits), Misses: iv.rate(w.Misses, c.Misses),
		})
	}
}

// point is what the charts show of a Frame.
func (f *Frame) point() Point {
	p := Point{
		At: f.At, Rates: make(map[string]float64), P50: f.Total.P50, P99: f.Total.P99, In: f.Total.In, Out: f.Total.Out,
		Threads: f.Process.Threads, Inside: f.Gate.Inside, Waiting: f.Gate.Waiting, Conns: f.Conns.Open, Clients: f.Conns.Clients,
	}
	for i := range f.Procs {
		if r := f.Procs[i].Rate; r > 0 {
			p.Rates[f.Procs[i].Name] += r
		}
	}
	if f.LocalIO != nil {
		p.Local = f.LocalIO.Opened
	}
	return p
}

// index finds rows by their keys. For a missing one it returns a zero row, which must not
// be changed.
func index[K comparable, R any](rows []R, key func(*R) K) func(K) *R {
	m, none := make(map[K]*R, len(rows)), new(R)
	for i := range rows {
		m[key(&rows[i])] = &rows[i]
	}
	return func(k K) *R { return cmp.Or(m[k], none) }
}

// upTo is at most n of rows; the Frame counts the others.
func upTo[R any](rows []R, n int, f *Frame) []R {
	if len(rows) > n {
		f.Left += len(rows) - n
		return rows[:n]
	}
	return rows
}

func seconds(nanos uint64) float64 { return float64(nanos) / float64(time.Second) }

// short is s, cut to maxName bytes at the end of a character.
func short(s string) string {
	const mark = "…"
	if len(s) <= maxName {
		return s
	}
	end := maxName - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}
