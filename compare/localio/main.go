// Command localio compares the roads to a file that a server on the same host
// serves: LOCALIO, our own RPC over loopback, and reading it without any server. The
// first two are what a program sees of them, Dial and vfs.File, the last ("direct")
// is pread, pwrite and fsync.
// In every round each road has its turn; what is printed are medians, the processor
// time of client and server together for an operation, and beside them the bars
// that LOCALIO has to clear.
//
//	cd compare && go run ./localio [-rounds 7] [-seconds 0.5] [-only NAME] [-server FILE] [-dir DIR] [-json] [-- FLAGS OF nfsbox serve]
//
// What is served is made in -dir, or below the directory for temporary files; it
// ought to be on a disk, for the writes. The files are in the page cache. In the
// tests on one core the client and its server are both bound to that core.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/compare/internal/serve"
)

type options struct {
	rounds       int
	seconds      float64
	only         string
	server, home string
	asJSON       bool
	flags        []string // of nfsbox serve
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 7, "rounds; figures are medians of them")
	flag.Float64Var(&o.seconds, "seconds", 0.5, "seconds of one measurement")
	flag.StringVar(&o.only, "only", "", "run only tests whose names contain this")
	flag.StringVar(&o.server, "server", "", "the nfsbox to run; built if empty")
	dir := flag.String("dir", "", "where the directory is made that is served")
	flag.BoolVar(&o.asJSON, "json", false, "print a line of JSON for each road and each bar of a test")
	flag.Parse()
	o.flags = flag.Args()
	o.rounds = max(o.rounds, 1)
	serve.Main(func(ctx context.Context) error { return compare(ctx, &o, *dir) })
}

func compare(ctx context.Context, o *options, dir string) (err error) {
	if o.home, err = os.MkdirTemp(dir, "nfsbox-localio-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.home)) }()
	if err := tree(o.export()); err != nil {
		return err
	}
	if o.server == "" {
		if o.server, err = serve.Build(ctx, o.home, false); err != nil {
			return err
		}
	}
	for i := range tests {
		t := &tests[i]
		if !strings.Contains(t.name, o.only) {
			continue
		}
		runs, err := t.run(ctx, o)
		if err == nil {
			err = t.show(runs, o.asJSON)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// export is the directory that is served, and sockets the one where the server is
// met by clients on its host.
func (o *options) export() string  { return filepath.Join(o.home, "export") }
func (o *options) sockets() string { return filepath.Join(o.home, "run") }

// run measures all roads in turn, on one server. runs has those of each road.
func (t *test) run(ctx context.Context, o *options) (runs [][]figure, err error) {
	if t.pinned {
		unpin, err := pin()
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, unpin()) }()
	}
	s, u, err := start(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	roads := make([]*road, len(roadNames))
	defer func() {
		for _, r := range roads {
			err = errors.Join(err, r.close())
		}
	}()
	runs = make([][]figure, len(roads))
	for range o.rounds {
		for i := range roads {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			runs[i] = append(runs[i], t.measure(ctx, o, s, u, roadNames[i], &roads[i]))
		}
	}
	return runs, nil
}

// measure has one turn on a road, which is opened first if there is none, or if
// nothing of it may be known from before. A tenth of the time goes to warm up.
func (t *test) measure(ctx context.Context, o *options, s *serve.Process, u *url.URL, name string, r **road) (f figure) {
	var err error
	defer func() {
		f.Test, f.Road = t.name, name
		if err != nil {
			f.Error = err.Error()
		}
	}()
	if *r == nil || t.op == opOpen {
		if err = (*r).close(); err != nil {
			return f
		}
		if *r, err = open(ctx, o, u, name); err != nil {
			return f
		}
	}
	l := &load{test: t, road: *r}
	if t.op != opOpen {
		if _, err = l.run(ctx, time.Duration(o.seconds*1e8)); err != nil {
			return f
		}
	}
	reads, used := (*r).calls(), serve.CPU(0)+s.CPU()
	took, err := l.run(ctx, time.Duration(o.seconds*1e9))
	if used = serve.CPU(0) + s.CPU() - used; err != nil {
		return f
	}
	ops := float64(max(l.ops.Load(), 1))
	f = figure{PerS: ops / took.Seconds(), CPU: used.Seconds() * 1e6 / ops}
	f.MiB = f.PerS * float64(t.size) / (1 << 20)
	if n := (*r).calls() - reads; name == localRoad && n > 0 {
		err = fmt.Errorf("%d of %.0f READs and WRITEs went over the network", n, ops)
	}
	return f
}
