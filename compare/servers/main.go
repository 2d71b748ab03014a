// Command servers compares NFSv3 servers side by side: ours, nfs-ganesha and,
// where $UNFSD names its binary, unfs3, over one directory, in one run, one after
// the other in every round. It prints medians of what an operation costs the
// server's process, which says more than rates on a machine that the load shares.
//
//	cd compare && go run ./servers [-rounds 5] [-seconds 1] [-only NAME] [-entries 0] [-dir DIR] [-json] [-- FLAGS OF nfsbox serve]
//
// $NFSBOX_BEFORE names an earlier build of ours, which then is a peer as well.
// It wants root, and the Debian packages nfs-ganesha, nfs-ganesha-vfs and rpcbind.
// With -entries N, servers are started afresh and list a directory of N files.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/compare/internal/serve"
	"github.com/nfsbox/nfsbox/compare/servers/load"
)

// test is one line of the comparison.
type test struct {
	name, op     string
	depth, conns int
}

var tests = []test{
	{"NULL, 32 in flight", "null", 32, 1},
	{"GETATTR, 32 in flight", "getattr", 32, 1},
	{"LOOKUP, 32 in flight", "lookup", 32, 1},
	{"READ 4 KiB, 32 in flight", "read", 32, 1},
	{"WRITE 4 KiB unstable, 32 in flight", "write", 32, 1},
	{"READ 1 MiB in sequence, 4 in flight", "bigread", 4, 1},
	{"READ and WRITE of 50 KiB, 500 clients", "mix", 1, 500},
}

// figure is what one measurement says.
type figure struct {
	Test    string  `json:"test"`
	Server  string  `json:"server"`
	CPU     float64 `json:"cpu_us"` // of the server's process, an operation
	Ratio   float64 `json:"ratio"`  // of our CPU to this server's
	PerS    float64 `json:"ops_per_second"`
	P50     float64 `json:"p50_us"`
	P99     float64 `json:"p99_us"`
	Threads float64 `json:"threads"`
	RSS     float64 `json:"rss_mib"`
	Error   string  `json:"error,omitempty"`
}

func (f *figure) held(m serve.Most) { f.Threads, f.RSS = m.Threads, m.MiB }

type options struct {
	rounds  int
	seconds float64
	only    string
	entries int
	dir     string
	asJSON  bool
	flags   []string // of nfsbox serve
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; figures are medians of them")
	flag.Float64Var(&o.seconds, "seconds", 1, "seconds of one measurement")
	flag.StringVar(&o.only, "only", "", "run only tests whose names contain this")
	flag.IntVar(&o.entries, "entries", 0, "list a directory of so many files, and nothing else")
	flag.StringVar(&o.dir, "dir", "", "where what is served is made and left; a temporary directory if empty")
	flag.BoolVar(&o.asJSON, "json", false, "print a line of JSON for each server and test")
	flag.Parse()
	o.flags = flag.Args()
	serve.Main(func(ctx context.Context) error { return compare(ctx, &o) })
}

func compare(ctx context.Context, o *options) (err error) {
	home, err := os.MkdirTemp("", "nfsbox-compare-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	export := o.dir
	if export == "" {
		export = filepath.Join(home, "export")
	}
	if err := os.MkdirAll(export, 0o755); err != nil {
		return err
	}
	binary, err := serve.Build(ctx, home, false)
	if err != nil {
		return err
	}
	kinds := kinds(home, export, binary, o.flags)
	if o.entries > 0 {
		return listings(ctx, o, export, kinds)
	}
	if err := tree(export); err != nil {
		return err
	}
	return loads(ctx, o, kinds)
}

func loads(ctx context.Context, o *options, kinds []kind) (err error) {
	servers := make([]*server, len(kinds))
	defer func() {
		for _, s := range servers {
			if s != nil {
				err = errors.Join(err, s.Stop())
			}
		}
	}()
	for i, k := range kinds {
		if servers[i], err = k.start(ctx); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
	}
	for _, t := range tests {
		if !strings.Contains(t.name, o.only) {
			continue
		}
		runs := make([][]figure, len(servers))
		for round := range o.rounds {
			for _, i := range serve.Turns(len(servers), round) {
				runs[i] = append(runs[i], t.measure(ctx, servers[i], o.seconds))
			}
		}
		if err := show(t.name, o.asJSON, runs); err != nil {
			return err
		}
	}
	return nil
}

// measure loads one server, after a tenth of the time to warm up.
func (t *test) measure(ctx context.Context, s *server, seconds float64) figure {
	l := load.Load{Addr: s.addr, URL: s.url, Op: t.op, Depth: t.depth, Conns: t.conns, For: time.Duration(seconds * 1e8)}
	if _, err := l.Run(ctx); err != nil {
		return figure{Error: err.Error()}
	}
	l.For = time.Duration(seconds * 1e9)
	before, watch := s.CPU(), s.Watch()
	r, err := l.Run(ctx)
	f := figure{PerS: float64(r.Ops) / r.Seconds, P50: r.P50, P99: r.P99}
	f.held(watch())
	f.CPU = (s.CPU() - before).Seconds() * 1e6 / float64(max(r.Ops, 1))
	if err != nil {
		f.Error = err.Error()
	}
	return f
}

// listings has every server list a directory that it has not seen before.
func listings(ctx context.Context, o *options, export string, kinds []kind) error {
	if err := crowd(filepath.Join(export, load.Entries), o.entries); err != nil {
		return err
	}
	runs := make([][]figure, len(kinds))
	for round := range o.rounds {
		for _, i := range serve.Turns(len(kinds), round) {
			s, err := kinds[i].start(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", kinds[i].name, err)
			}
			before, watch := s.CPU(), s.Watch()
			r, err := load.List(ctx, s.addr, s.url)
			f := figure{PerS: float64(r.Ops) / r.Seconds}
			f.held(watch())
			f.CPU = (s.CPU() - before).Seconds() * 1e6 / float64(max(r.Ops, 1))
			if err == nil && r.Ops < o.entries {
				err = fmt.Errorf("%d entries of %d", r.Ops, o.entries)
			}
			if err != nil {
				f.Error = err.Error()
			}
			runs[i] = append(runs[i], f)
			if err := s.Stop(); err != nil {
				return err
			}
		}
	}
	return show(fmt.Sprintf("READDIRPLUS of %d entries by a server just started, an entry", o.entries), o.asJSON, runs)
}

// show prints the medians of the runs of each server; the first is ours.
func show(name string, asJSON bool, runs [][]figure) error {
	if !asJSON {
		fmt.Printf("\n%s\n\n| server | CPU us/op | ours is | ops/s | p50 us | p99 us | threads | MiB |\n|---|---|---|---|---|---|---|---|\n", name)
	}
	var ours float64
	for i, r := range runs {
		f := median(r)
		f.Test, f.Server = name, names[i]
		if i == 0 {
			ours = f.CPU
		}
		f.Ratio = ours / f.CPU
		switch {
		case asJSON:
			if err := json.NewEncoder(os.Stdout).Encode(&f); err != nil {
				return err
			}
		case f.Error != "":
			fmt.Printf("| %s | failed: %s |\n", f.Server, f.Error)
		default:
			fmt.Printf("| %s | %.2f | %.2fx | %.0f | %.0f | %.0f | %.0f | %.0f |\n", f.Server, f.CPU, f.Ratio, f.PerS, f.P50, f.P99, f.Threads, f.RSS)
		}
	}
	return nil
}

// median is the medians of all columns; threads and memory are the most.
func median(runs []figure) (f figure) {
	f.CPU = serve.Median(runs, func(f *figure) float64 { return f.CPU })
	f.PerS = serve.Median(runs, func(f *figure) float64 { return f.PerS })
	f.P50 = serve.Median(runs, func(f *figure) float64 { return f.P50 })
	f.P99 = serve.Median(runs, func(f *figure) float64 { return f.P99 })
	for _, r := range runs {
		f.Threads, f.RSS = max(f.Threads, r.Threads), max(f.RSS, r.RSS)
		if r.Error != "" {
			f.Error = r.Error
		}
	}
	return f
}
