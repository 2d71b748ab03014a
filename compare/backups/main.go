// Command backups compares nfsbox backup and restore with restic, on one tree of this host. Neither compresses.
//
//	cd compare && go run ./backups [-rounds 5] [-files 100000] [-large 128] [-only NAME] [-dir DIR] [-json]
//
// The tree has -files files of up to 16 KiB, in directories of 100, and -large files of 64 MiB, none of which
// could be compressed. It is in the page cache, if that is large enough. In every round each program has its turn,
// every other round backwards: a first backup into a new store, a second one of the same tree, and a restore into a new directory.
// What is printed are medians. Behind each step its file system is synced, so that nobody pays for another's
// bytes; the time until then is a column of its own. What is restored is counted.
//
// The disk needs room for five times the tree: at the end of each round all stores and what was restored are removed. An ext4 does
// not use an inode again that was freed in the last minute, but looks each of them through for each new file; so
// the next round begins 70 s later.
//
// They do not do the same: restic encrypts, and of what it restores it syncs nothing; nfsbox syncs a file before it has its name.
//
// Debian's package is restic. $NFSBOX_BEFORE names an earlier nfsbox, which then takes part as well.
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

// settle is how long an ext4 minds that inodes were freed, and some.
const settle = 70 * time.Second

type options struct {
	rounds int
	only   string
	home   string
	tree   tree
	asJSON bool
}

// row is what is printed of one step of a program.
type row struct {
	Step    string  `json:"step"`
	Program string  `json:"program"`
	Wall    float64 `json:"seconds"`
	Disk    float64 `json:"seconds_until_on_disk"`
	CPU     float64 `json:"cpu_seconds"`
	Memory  float64 `json:"peak_mib"`
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; figures are medians of them")
	flag.IntVar(&o.tree.files, "files", 100_000, "how many files of up to 16 KiB the tree has")
	flag.IntVar(&o.tree.large, "large", 128, "how many files of 64 MiB it has")
	flag.StringVar(&o.only, "only", "", "let only programs take part whose names contain this")
	dir := flag.String("dir", "", "where all is kept: a directory on the disk in question")
	flag.BoolVar(&o.asJSON, "json", false, "print a line of JSON for each step of a program")
	flag.Parse()
	o.rounds = max(o.rounds, 1)
	serve.Main(func(ctx context.Context) error { return compare(ctx, &o, *dir) })
}

func compare(ctx context.Context, o *options, dir string) (err error) {
	if o.home, err = os.MkdirTemp(dir, "nfsbox-backups-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.home)) }()
	binary, err := serve.Build(ctx, o.home, false)
	if err != nil {
		return err
	}
	o.tree.path = filepath.Join(o.home, "tree")
	if err := o.tree.fill(); err != nil {
		return err
	}
	var all []program
	for _, p := range programs(binary, o.home) {
		if strings.Contains(p.name, o.only) {
			all = append(all, p)
		}
	}
	figures := make([][steps][]figure, len(all))
	for round := range o.rounds {
		if err := turns(ctx, o, all, figures, round); err != nil {
			return err
		}
	}
	return show(all, figures, o.asJSON)
}

// turns has each program its turn, in one round.
func turns(ctx context.Context, o *options, all []program, figures [][steps][]figure, round int) error {
	place := filepath.Join(o.home, fmt.Sprintf("round-%d", round))
	if round > 0 {
		select {
		case <-time.After(settle):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for _, i := range serve.Turns(len(all), round) {
		fs, err := all[i].turn(ctx, &o.tree, filepath.Join(place, fmt.Sprint(i)))
		if err != nil {
			return fmt.Errorf("%s: %w", all[i].name, err)
		}
		for step := range fs {
			figures[i][step] = append(figures[i][step], fs[step])
		}
	}
	return os.RemoveAll(place)
}

func show(all []program, figures [][steps][]figure, asJSON bool) error {
	if !asJSON {
		fmt.Println("| step | program | s | s, on the disk | CPU s | peak MiB |\n|---|---|---|---|---|---|")
	}
	out := json.NewEncoder(os.Stdout)
	for step, name := range stepNames {
		for i := range all {
			fs := figures[i][step]
			r := row{
				Step: name, Program: all[i].name,
				Wall:   serve.Median(fs, func(f *figure) float64 { return f.wall }),
				Disk:   serve.Median(fs, func(f *figure) float64 { return f.disk }),
				CPU:    serve.Median(fs, func(f *figure) float64 { return f.cpu }),
				Memory: serve.Median(fs, func(f *figure) float64 { return f.memory }),
			}
			if asJSON {
				if err := out.Encode(&r); err != nil {
					return err
				}
				continue
			}
			fmt.Printf("| %s | %s | %.2f | %.2f | %.2f | %.0f |\n", r.Step, r.Program, r.Wall, r.Disk, r.CPU, r.Memory)
		}
	}
	return nil
}
