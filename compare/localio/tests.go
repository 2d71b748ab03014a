package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/nfsbox/nfsbox/compare/internal/serve"
)

type op int

const (
	opRandom   op = iota // reads at random places
	opSequence           // reads one after the other
	opWrite              // writes in sequence, each with a commit, of a file for each worker
	opOpen               // opens, reads and closes of files that no client has met
)

// test is one table.
type test struct {
	name    string
	op      op
	size    int // of a read or write
	workers int // with an open file each
	depth   int // callers of each
	pinned  bool
	bars    []bar
}

// bar is what LOCALIO has to reach beside another road: so many times its
// operations a second, or so much of its processor time for each.
type bar struct {
	road string
	cpu  bool // at most; else at least
	want float64
}

var small = []bar{{rpcRoad, false, 20}, {rpcRoad, true, 0.1}, {plainRoad, false, 0.8}}

var tests = []test{
	{"random reads of 4 KiB, one at a time", opRandom, 4 << 10, 1, 1, false, small},
	{"random reads of 4 KiB, one at a time, one core", opRandom, 4 << 10, 1, 1, true,
		[]bar{{rpcRoad, false, 10}, {rpcRoad, true, 0.1}, {plainRoad, false, 0.8}}},
	{"random reads of 64 KiB, 24 workers, 8 at a time each", opRandom, 64 << 10, 24, 8, false, []bar{{rpcRoad, false, 4}}},
	{"reads of 1 MiB in sequence, one at a time", opSequence, 1 << 20, 1, 1, false, []bar{{rpcRoad, false, 5}}},
	{"writes of 4 KiB, each with a commit", opWrite, 4 << 10, 1, 1, false, []bar{{rpcRoad, false, 0.9}}},
	{"writes of 4 KiB, each with a commit, 16 workers", opWrite, 4 << 10, 16, 1, false, []bar{{rpcRoad, false, 0.9}}},
	{"writes of 128 KiB, each with a commit", opWrite, 128 << 10, 1, 1, false, []bar{{rpcRoad, false, 0.9}}},
	{"writes of 128 KiB, each with a commit, 16 workers", opWrite, 128 << 10, 16, 1, false, []bar{{rpcRoad, false, 0.9}}},
	{"files of 4 KiB: open, read, close", opOpen, 4 << 10, 1, 1, false, nil},
	{"files of 4 KiB: open, read, close, 16 workers", opOpen, 4 << 10, 16, 1, false, nil},
	{"files of 64 KiB: open, read, close", opOpen, 64 << 10, 1, 1, false, nil},
	{"files of 64 KiB: open, read, close, 16 workers", opOpen, 64 << 10, 16, 1, false, nil},
}

// figure is what one measurement says, or the medians of them.
type figure struct {
	Test  string  `json:"test"`
	Road  string  `json:"road"`
	PerS  float64 `json:"ops_per_second"`
	MiB   float64 `json:"mib_per_second"`
	CPU   float64 `json:"cpu_us"` // of client and server, an operation
	Error string  `json:"error,omitempty"`
}

// verdict is what came of a bar.
type verdict struct {
	Test   string  `json:"test"`
	Beside string  `json:"beside"`
	Of     string  `json:"of"`
	Bar    float64 `json:"bar"`
	Ratio  float64 `json:"ratio"`
	Met    bool    `json:"met"`
}

func median(runs []figure) figure {
	f := runs[0]
	f.PerS = serve.Median(runs, func(f *figure) float64 { return f.PerS })
	f.MiB = serve.Median(runs, func(f *figure) float64 { return f.MiB })
	f.CPU = serve.Median(runs, func(f *figure) float64 { return f.CPU })
	for _, r := range runs {
		if r.Error != "" {
			f.Error = r.Error
		}
	}
	return f
}

func (t *test) show(runs [][]figure, asJSON bool) error {
	out := json.NewEncoder(os.Stdout)
	if !asJSON {
		fmt.Printf("\n%s\n\n| road | ops/s | MiB/s | CPU us/op | LOCALIO: ops/s | CPU |\n|---|---|---|---|---|---|\n", t.name)
	}
	medians := make(map[string]figure, len(runs))
	for i, r := range runs {
		medians[roadNames[i]] = median(r)
	}
	local := medians[localRoad]
	for _, name := range roadNames {
		f := medians[name]
		switch {
		case asJSON:
			if err := out.Encode(&f); err != nil {
				return err
			}
		case f.Error != "":
			fmt.Printf("| %s | failed: %s |\n", name, f.Error)
		default:
			fmt.Printf("| %s | %.0f | %.0f | %.2f | %.2fx | %.3fx |\n", name, f.PerS, f.MiB, f.CPU, local.PerS/f.PerS, local.CPU/f.CPU)
		}
	}
	for _, b := range t.bars {
		v := b.judge(local, medians[b.road])
		if asJSON {
			if err := out.Encode(&v); err != nil {
				return err
			}
			continue
		}
		fmt.Println("\n" + v.String())
	}
	return nil
}

// judge compares with the other road. Whatever failed has met no bar.
func (b *bar) judge(local, other figure) verdict {
	v := verdict{Test: local.Test, Beside: b.road, Of: "ops_per_second", Bar: b.want, Ratio: local.PerS / other.PerS}
	v.Met = v.Ratio >= b.want
	if b.cpu {
		v.Of, v.Ratio = "cpu_us", local.CPU/other.CPU
		v.Met = v.Ratio <= b.want
	}
	if local.Error != "" || other.Error != "" {
		v.Ratio, v.Met = 0, false
	}
	return v
}

func (v *verdict) String() string {
	met, limit := "MISSED", "at least"
	if v.Met {
		met = "met"
	}
	if v.Of == "cpu_us" {
		limit = "at most"
	}
	return fmt.Sprintf("%s: %s %gx that of %s in %s: %.2fx", met, limit, v.Bar, v.Beside, v.Of, v.Ratio)
}
