// Command clients compares NFS clients side by side: ours, libnfs in C, and the
// usual one in Go, against one server, in one run, one after the other in every
// round. It prints medians of what an operation costs the client's process.
//
//	cd compare && go run ./clients [-rounds 5] [-seconds 1] [-only NAME] [-server nfsbox] [-json]
//
// The server is the responder beside this command, which makes its answers up, so
// that clients are measured and not a disk; or nfsbox, serving a directory.
//
// $OURS_BEFORE names the driver ./clients/ours of an earlier commit, built there, which
// then is a peer as well.
//
// libnfs is that of the system (Debian: libnfs-dev); LIBNFS=/prefix adds another
// one that is installed there. System calls are counted by strace, if it is here,
// in runs of their own.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/nfsbox/nfsbox/compare/clients/drive"
	"github.com/nfsbox/nfsbox/compare/internal/serve"
)

// test is one line of the comparison.
type test struct {
	name  string
	op    string
	depth int
	pin   string // server and client both run on this core
	file  string
	count int // operations in a run under strace
}

// tests are all that are run; -only picks from them.
func tests() []test {
	return []test{
		{"GETATTR, 64 in flight", "getattr", 64, "", fileName, 20_000},
		{"GETATTR, 64 in flight, one core", "getattr", 64, "0", fileName, 20_000},
		{"GETATTR, one at a time, one core", "getattr", 1, "0", fileName, 2000},
		{"READ 1 MiB, one at a time", "read", 1, "", fileName, 200},
		{"READ 1 MiB, one at a time, one core", "read", 1, "0", fileName, 200},
		{"READDIRPLUS, an entry", "list", 1, "", dirName, 5 * dirEntries},
	}
}

// line is what came out for one client in one test.
type line struct {
	Test     string  `json:"test"`
	Client   string  `json:"client"`
	CPU      float64 `json:"cpu_us"`
	Ratio    float64 `json:"ratio"` // of our CPU to the client's
	PerS     float64 `json:"ops_per_second"`
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	Allocs   float64 `json:"allocs"`
	Syscalls float64 `json:"syscalls"`
	Error    string  `json:"error,omitempty"`
}

func main() {
	rounds := flag.Int("rounds", 5, "rounds; figures are medians of them")
	seconds := flag.Float64("seconds", 1, "seconds of one measurement")
	asJSON := flag.Bool("json", false, "print a line of JSON for each client and test")
	only := flag.String("only", "", "run only tests whose names contain this")
	against := flag.String("server", "responder", "responder, or nfsbox")
	flag.Parse()
	serve.Main(func(ctx context.Context) error {
		return compare(ctx, *only, *against, max(*rounds, 1), *seconds, *asJSON)
	})
}

func compare(ctx context.Context, only, against string, rounds int, seconds float64, asJSON bool) (err error) {
	dir, err := os.MkdirTemp("", "nfsbox-compare-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	export, bin := filepath.Join(dir, "export"), filepath.Join(dir, "bin")
	if err := errors.Join(os.Mkdir(export, 0o755), os.Mkdir(bin, 0o755)); err != nil {
		return err
	}
	server, err := prepare(ctx, against, export, bin)
	if err != nil {
		return err
	}
	peers, err := build(ctx, bin)
	if err != nil {
		return err
	}
	for _, c := range tests() {
		if !strings.Contains(c.name, only) {
			continue
		}
		lines, err := c.run(ctx, server, dir, peers, rounds, seconds)
		if err != nil {
			return err
		}
		if err := show(&c, lines, asJSON); err != nil {
			return err
		}
	}
	return nil
}

// prepare builds the server, with something to serve, and returns how to start
// it.
func prepare(ctx context.Context, against, export, bin string) ([]string, error) {
	switch against {
	case "responder":
		binary := filepath.Join(bin, against)
		return []string{binary}, command(ctx, "go", "build", "-o", binary, "./clients/responder")
	case "nfsbox":
		if err := tree(export); err != nil {
			return nil, err
		}
		binary, err := serve.Build(ctx, bin, false)
		return []string{binary, "serve", "--listen", "127.0.0.1:0", export}, err
	}
	return nil, fmt.Errorf("no server is called %q", against)
}

// run drives all peers against one server, interleaved.
func (c *test) run(ctx context.Context, server []string, dir string, peers []peer, rounds int, seconds float64) ([]line, error) {
	s, url, err := start(ctx, server, c.pin)
	if err != nil {
		return nil, err
	}
	results := make([][]drive.Result, len(peers))
	failed := make([]error, len(peers))
	for round := range rounds {
		for _, i := range serve.Turns(len(peers), round) {
			if failed[i] != nil {
				continue
			}
			r, err := c.drive(ctx, peers[i], url, seconds, 0)
			if err != nil {
				failed[i] = err
				continue
			}
			results[i] = append(results[i], r)
		}
	}
	lines := make([]line, len(peers))
	for i, p := range peers {
		if lines[i] = summary(c, p, results[i]); failed[i] == nil {
			lines[i].Syscalls, failed[i] = c.callsOf(ctx, p, url, dir)
		}
		if failed[i] != nil {
			lines[i].Error = failed[i].Error()
		}
		lines[i].Ratio = lines[0].CPU / lines[i].CPU
	}
	return lines, s.Stop()
}

// callsOf counts the system calls of one operation where that can be done.
func (c *test) callsOf(ctx context.Context, p peer, url, dir string) (float64, error) {
	if _, err := exec.LookPath("strace"); err != nil {
		return -1, nil //nolint:nilerror // the column says that it was not counted
	}
	return c.syscalls(ctx, p, url, dir)
}

func summary(c *test, p peer, r []drive.Result) line {
	return line{
		Test: c.name, Client: p.name,
		CPU:    serve.Median(r, func(r *drive.Result) float64 { return r.CPU }),
		PerS:   serve.Median(r, func(r *drive.Result) float64 { return float64(r.Ops) / r.Seconds }),
		P50:    serve.Median(r, func(r *drive.Result) float64 { return r.P50 }),
		P99:    serve.Median(r, func(r *drive.Result) float64 { return r.P99 }),
		Allocs: serve.Median(r, func(r *drive.Result) float64 { return r.Allocs }),
	}
}

func show(c *test, lines []line, asJSON bool) error {
	if asJSON {
		out := json.NewEncoder(os.Stdout)
		for i := range lines {
			if err := out.Encode(&lines[i]); err != nil {
				return err
			}
		}
		return nil
	}
	fmt.Printf("\n%s\n\n| client | CPU us/op | ours is | ops/s | p50 us | p99 us | allocations | system calls |\n|---|---|---|---|---|---|---|---|\n", c.name)
	for _, l := range lines {
		if l.Error != "" {
			fmt.Printf("| %s | failed: %s |\n", l.Client, l.Error)
			continue
		}
		fmt.Printf("| %s | %.3f | %.2fx | %.0f | %.1f | %.1f | %.2f | %.2f |\n", l.Client, l.CPU, l.Ratio, l.PerS, l.P50, l.P99, l.Allocs, l.Syscalls)
	}
	return nil
}
