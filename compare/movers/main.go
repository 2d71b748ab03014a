// Command movers compares nfsbox cp with the programs that copy trees elsewhere: cp -a, rsync
// and rclone between local directories, and nfsbox cp itself to and from NFS servers, ours and
// nfs-ganesha.
//
//	cd compare && go run ./movers [-rounds 5] [-files 20000] [-go DIR] [-only NAME] [-dir DIR] [-json]
//
// There are two trees: Go's own source, and -files files of 4 KiB in directories of 100. The issue
// that asked for this names 100,000 files; the default is a fifth, which says the same in less
// time. Sources are in the page cache. In every round each mover has its turn, every other round
// backwards; what is printed are medians. Behind each turn the copy is counted, and its file
// system synced, so that nobody pays for another's bytes. All copies are removed in the end, so that
// the disk needs room for them.
//
// The movers differ in what is on the disk when they end: the last column says what each of them
// syncs. So there are two times: until the mover has ended, and until a syncfs(2) behind it has. The
// processor time is the mover's, with its children's, and in a column of its own that of the server.
// What the kernel's own threads write later is in neither.
//
// Debian's packages are rsync, rclone, nfs-ganesha and nfs-ganesha-vfs; what is not here is left out,
// and said so. $NFSBOX_BEFORE names an earlier nfsbox, which then is a mover as well.
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

	"github.com/nfsbox/nfsbox/compare/internal/serve"
)

type options struct {
	rounds int
	only   string
	home   string
	data   string // in home: what is copied, the copies, and what is served
	binary string
	asJSON bool
	copies int // that were made
}

// figure is what one turn of a mover came to. Times are in seconds.
type figure struct{ Wall, Disk, CPU, Server float64 }

// row is what is printed of a mover.
type row struct {
	Tree   string  `json:"tree"`
	Way    string  `json:"way"`
	Mover  string  `json:"mover"`
	Wall   float64 `json:"seconds"`
	Disk   float64 `json:"seconds_until_on_disk"`
	CPU    float64 `json:"cpu_seconds"`
	Server float64 `json:"server_cpu_seconds"`
	Syncs  string  `json:"syncs"`
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; figures are medians of them")
	files := flag.Int("files", 20_000, "how many files of 4 KiB the second tree has")
	goTree := flag.String("go", "", "the first tree; Go's source if empty")
	flag.StringVar(&o.only, "only", "", "run only tests, as TREE, WAY, whose names contain this")
	dir := flag.String("dir", "", "where everything is copied: a directory on the disk in question")
	flag.BoolVar(&o.asJSON, "json", false, "print a line of JSON for each mover of a test")
	flag.Parse()
	o.rounds = max(o.rounds, 1)
	serve.Main(func(ctx context.Context) error { return compare(ctx, &o, *dir, *goTree, max(*files, 1)) })
}

func compare(ctx context.Context, o *options, dir, goTree string, files int) (err error) {
	if o.home, err = os.MkdirTemp(dir, "nfsbox-movers-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.home)) }()
	o.data = filepath.Join(o.home, "data")
	if err := os.Mkdir(o.data, 0o755); err != nil {
		return err
	}
	if o.binary, err = serve.Build(ctx, o.home, false); err != nil {
		return err
	}
	trees, err := sources(ctx, o, goTree, files)
	if err != nil {
		return err
	}
	peers := movers(o)
	servers, stop, err := startServers(ctx, o)
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return err
	}
	for i := range trees {
		for _, t := range tests(peers, servers) {
			if !strings.Contains(trees[i].name+", "+t.way, o.only) {
				continue
			}
			rows, err := t.run(ctx, o, &trees[i])
			if err != nil {
				return fmt.Errorf("%s, %s: %w", trees[i].name, t.way, err)
			}
			if err := show(rows, o.asJSON); err != nil {
				return err
			}
		}
	}
	return nil
}

// sources makes the trees that are copied, and reads Go's own into the page cache.
func sources(ctx context.Context, o *options, goTree string, files int) ([]tree, error) {
	if goTree == "" {
		root, err := output(ctx, "go", "env", "GOROOT")
		if err != nil {
			return nil, err
		}
		goTree = filepath.Join(root, "src")
	}
	own := tree{name: "Go's source", path: filepath.Join(o.data, "go")}
	if err := command(ctx, "cp", "-a", goTree, own.path); err != nil {
		return nil, err
	}
	small := tree{name: fmt.Sprintf("%d files of 4 KiB", files), path: filepath.Join(o.data, "small")}
	err := small.fill(files)
	return []tree{own, small}, errors.Join(err, own.count(), small.count())
}

func show(rows []row, asJSON bool) error {
	if asJSON {
		out := json.NewEncoder(os.Stdout)
		for i := range rows {
			if err := out.Encode(&rows[i]); err != nil {
				return err
			}
		}
		return nil
	}
	fmt.Printf("\n%s, %s\n\n| mover | s | first to this | s, on the disk | first to this | CPU s | first to this | server's CPU s | it syncs |\n|---|---|---|---|---|---|---|---|---|\n",
		rows[0].Tree, rows[0].Way)
	for _, r := range rows {
		fmt.Printf("| %s | %.2f | %.2fx | %.2f | %.2fx | %.2f | %.2fx | %.2f | %s |\n", r.Mover,
			r.Wall, rows[0].Wall/r.Wall, r.Disk, rows[0].Disk/r.Disk, r.CPU, rows[0].CPU/r.CPU, r.Server, r.Syncs)
	}
	return nil
}
