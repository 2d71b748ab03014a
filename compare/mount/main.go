// Command mount compares nfsbox mount with fuse-nfs, the mount of libnfs, over one NFS server: large files read and
// written, 4 KiB read here and there, ls -lR, an archive unpacked, and git status of a large tree.
//
//	cd compare && FUSE_NFS=/path/of/fuse-nfs go run ./mount [-rounds 5] [-size 512] [-go DIR] [-only NAME] [-dir DIR] [-server ganesha] [-json]
//
// It needs root, /dev/fuse and git. fuse-nfs is in no release of Debian's, and is built outside of this repository: it
// is one file, fuse/fuse-nfs.c of github.com/sahlberg/fuse-nfs, which takes libnfs and version 2 of libfuse
// (libnfs-dev, libfuse-dev). $NFSBOX_BEFORE names an earlier nfsbox, which then is a mount as well.
//
// In every round each mount has its turn, every other round backwards; what is printed are medians. Each turn has a mount
// of its own, so that the kernel has nothing of it in its cache; the server has all of it. What a turn costs in processor
// time is in three columns: the mount's process, until it has ended; the program that uses it, with all that the kernel
// does in its name; the server.
//
// The two differ in what a close means. nfsbox has the server make all stable (COMMIT) before close(2) returns, and asks it
// at each open whether the file has changed. fuse-nfs writes each piece stably or not as its server likes, syncs when it is
// told to, and keeps names and attributes for a second. Both have their defaults, but that fuse-nfs may write 128 KiB at
// once, the most that it can.
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

	"github.com/nfsbox/nfsbox/compare/internal/serve"
)

type options struct {
	rounds    int
	size      int // bytes of the large file
	only      string
	home      string
	data      string // in home: what is served
	at        string // in home: where it is mounted
	binary    string
	server    string
	tree      string  // Go's source
	names     float64 // that the tree has where it is served
	partNames float64 // that the part of it has which is unpacked
	asJSON    bool
}

// row is what is printed of a mount.
type row struct {
	Test    string  `json:"test"`
	Mount   string  `json:"mount"`
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"rate"` // in units a second
	Unit    string  `json:"unit"`
	CPU     float64 `json:"mount_cpu_seconds"`
	User    float64 `json:"program_cpu_seconds"`
	Server  float64 `json:"server_cpu_seconds"`
}

func (r *row) allCPU() float64 { return r.CPU + r.User + r.Server }

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; figures are medians of them")
	size := flag.Int("size", 512, "MiB of the large file")
	flag.StringVar(&o.tree, "go", "", "the tree that is listed, unpacked and looked through; Go's source if empty")
	flag.StringVar(&o.only, "only", "", "run only tests whose names contain this")
	flag.StringVar(&o.server, "server", "nfsbox", "who serves: nfsbox or ganesha")
	dir := flag.String("dir", "", "what is served lies there: a directory on the disk in question")
	flag.BoolVar(&o.asJSON, "json", false, "print a line of JSON for each mount of a test")
	flag.Parse()
	o.rounds, o.size = max(o.rounds, 1), max(*size, 1)<<20
	serve.Main(func(ctx context.Context) error { return compare(ctx, &o, *dir) })
}

func compare(ctx context.Context, o *options, dir string) (err error) {
	if o.home, err = os.MkdirTemp(dir, "nfsbox-mounts-"); err != nil {
		return err
	}
	o.data, o.at = filepath.Join(o.home, "data"), filepath.Join(o.home, "mnt")
	defer func() {
		if isMounted(o.at) { // what is served would be emptied
			err = errors.Join(err, fmt.Errorf("%s is still mounted, and so %s is left", o.at, o.home))
			return
		}
		err = errors.Join(err, os.RemoveAll(o.home))
	}()
	if err := errors.Join(os.Mkdir(o.data, 0o755), os.Mkdir(o.at, 0o755)); err != nil {
		return err
	}
	if o.binary, err = serve.Build(ctx, o.home, false); err != nil {
		return err
	}
	if err := prepare(ctx, o); err != nil {
		return err
	}
	server, url, err := startServer(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	for _, t := range tests() {
		if !strings.Contains(t.name, o.only) {
			continue
		}
		rows, err := t.run(ctx, o, mounts(o, url), server)
		if err == nil {
			err = show(rows, o.asJSON)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// startServer starts the server of the data.
func startServer(ctx context.Context, o *options) (*serve.Process, string, error) {
	if o.server == "ganesha" {
		p, g, err := serve.Ganesha(ctx, o.home, o.data)
		if err != nil {
			return nil, "", err
		}
		return p, g.URL(o.data), nil
	}
	state := filepath.Join(o.home, "state")
	p, u, err := serve.Ours(exec.CommandContext(ctx, o.binary, "serve", "--listen", "127.0.0.1:0", "--state-dir", state, "--squash", "none", "--localio=off", o.data))
	if err != nil {
		return nil, "", err
	}
	// libnfs mounts by the portmapper unless both ports are named.
	return p, fmt.Sprintf("nfs://%s/?nfsport=%s&mountport=%[2]s", u.Hostname(), u.Port()), nil
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
	fmt.Printf("\n%s\n\n| mount | s | %s/s | first to this | its CPU s | program's CPU s | server's CPU s | all CPU s | first to this |\n|---|---|---|---|---|---|---|---|---|\n",
		rows[0].Test, rows[0].Unit)
	for i := range rows {
		r := &rows[i]
		fmt.Printf("| %s | %.2f | %.0f | %.2fx | %.2f | %.2f | %.2f | %.2f | %.2fx |\n", r.Mount, r.Seconds, r.Rate, rows[0].Rate/r.Rate,
			r.CPU, r.User, r.Server, r.allCPU(), rows[0].allCPU()/r.allCPU())
	}
	return nil
}
