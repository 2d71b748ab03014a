// Command pools compares the ways in which nfsbox serve reaches the disk
// (--io-pool), side by side: 500 clients, a connection each, upload and download
// files of 50 KiB. In every round each kind has a turn, with a server of its own
// that was started for it, since a process never gives its threads back. What is
// printed are medians; of threads, it is the most ever seen.
//
//	cd compare && go run ./pools [-rounds 5] [-seconds 2] [-clients 500] [-only NAME] [-dir DIR] [-json] [-- FLAGS OF nfsbox serve]
//
// The directory is made in -dir, or below the directory for temporary files; it
// ought to be on a disk, and a warning says so if it is not. nfsbox is built with
// cgo and the tag nfsbox_cthreads, or given by -server.
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
)

// kinds are those of package iogate.
var kinds = []string{"auto", "none", "go", "c", "uring"}

type options struct {
	rounds, clients int
	seconds         float64
	only, dir       string
	server          string
	asJSON          bool
	flags           []string // of nfsbox serve
}

// figure is what one measurement says.
type figure struct {
	Test    string  `json:"test"`
	Kind    string  `json:"kind"`
	PerS    float64 `json:"files_per_second"`
	P50     float64 `json:"p50_ms"`
	P99     float64 `json:"p99_ms"`
	CPU     float64 `json:"cpu_us"` // of the server's process, a file
	Threads float64 `json:"threads"`
	Later   float64 `json:"later"` // calls that were told to come back later
	Note    string  `json:"note,omitempty"`
	Error   string  `json:"error,omitempty"`
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; figures are medians of them")
	flag.IntVar(&o.clients, "clients", 500, "clients, with a connection each")
	flag.Float64Var(&o.seconds, "seconds", 2, "seconds of one measurement")
	flag.StringVar(&o.only, "only", "", "run only tests whose names contain this")
	flag.StringVar(&o.dir, "dir", "", "where the directory is made that is served")
	flag.StringVar(&o.server, "server", "", "the nfsbox to run; built if empty")
	flag.BoolVar(&o.asJSON, "json", false, "print a line of JSON for each kind and test")
	flag.Parse()
	o.flags = flag.Args()
	serve.Main(func(ctx context.Context) error { return compare(ctx, &o) })
}

func compare(ctx context.Context, o *options) (err error) {
	home, err := os.MkdirTemp(o.dir, "nfsbox-pools-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	if err := warn(home); err != nil {
		return err
	}
	if o.server == "" {
		if o.server, err = serve.Build(ctx, home, true); err != nil {
			return err
		}
	}
	export := filepath.Join(home, "export")
	if err := errors.Join(tree(export, o.clients), clear(export)); err != nil {
		return err
	}
	for i := range tests {
		t := &tests[i]
		if !strings.Contains(t.name, o.only) {
			continue
		}
		runs := make([][]figure, len(kinds))
		for range o.rounds {
			for i, kind := range kinds {
				if err := ctx.Err(); err != nil {
					return err
				}
				runs[i] = append(runs[i], t.measure(ctx, o, home, export, kind))
			}
		}
		if err := show(t.name, o.asJSON, runs); err != nil {
			return err
		}
	}
	return nil
}

// measure has a server of the kind loaded.
func (t *test) measure(ctx context.Context, o *options, home, export, kind string) figure {
	f, err := t.run(ctx, o, home, export, kind)
	f.Test, f.Kind = t.name, kind
	if err != nil {
		f.Error = err.Error()
	}
	return f
}

func (t *test) run(ctx context.Context, o *options, home, export, kind string) (f figure, err error) {
	s, u, err := start(ctx, o, home, export, kind)
	if err != nil {
		return f, err
	}
	defer func() {
		err = errors.Join(err, s.Stop(), clear(export))
		f.Note = note(s.Log())
	}()
	clients, err := dial(ctx, u, o.clients)
	defer func() { err = errors.Join(err, hangUp(clients)) }()
	if err != nil {
		return f, err
	}
	if t.once { // what was read to warm up would not be cold
		if err := evict(export); err != nil {
			return f, err
		}
	} else if _, err := t.load(ctx, clients, time.Duration(o.seconds*1e8)); err != nil {
		return f, err
	}
	before, watch := s.CPU(), s.Watch()
	r, err := t.load(ctx, clients, time.Duration(o.seconds*1e9))
	f = figure{PerS: float64(len(r.took)) / r.seconds, P50: r.quantile(50), P99: r.quantile(99), Threads: watch().Threads, Later: float64(r.later)}
	f.CPU = (s.CPU() - before).Seconds() * 1e6 / float64(max(len(r.took), 1))
	return f, err
}

// show prints the medians of the runs of each kind.
func show(name string, asJSON bool, runs [][]figure) error {
	if !asJSON {
		fmt.Printf("\n%s\n\n| --io-pool | files/s | p50 ms | p99 ms | CPU us/file | threads | told to come later | |\n|---|---|---|---|---|---|---|---|\n", name)
	}
	for _, r := range runs {
		f := median(r)
		switch {
		case asJSON:
			if err := json.NewEncoder(os.Stdout).Encode(&f); err != nil {
				return err
			}
		case f.Error != "":
			fmt.Printf("| %s | failed: %s |\n", f.Kind, f.Error)
		default:
			fmt.Printf("| %s | %.0f | %.1f | %.1f | %.1f | %.0f | %.0f | %s |\n", f.Kind, f.PerS, f.P50, f.P99, f.CPU, f.Threads, f.Later, f.Note)
		}
	}
	return nil
}

// median is the medians of all columns; of threads it is the most.
func median(runs []figure) figure {
	f := runs[0]
	f.PerS = serve.Median(runs, func(f *figure) float64 { return f.PerS })
	f.P50 = serve.Median(runs, func(f *figure) float64 { return f.P50 })
	f.P99 = serve.Median(runs, func(f *figure) float64 { return f.P99 })
	f.CPU = serve.Median(runs, func(f *figure) float64 { return f.CPU })
	f.Later = serve.Median(runs, func(f *figure) float64 { return f.Later })
	for _, r := range runs {
		f.Threads = max(f.Threads, r.Threads)
		if r.Error != "" {
			f.Error = r.Error
		}
	}
	return f
}
