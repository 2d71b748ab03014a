// Command gofsbench compares the file API of nfsbox with GoFsBench, a file service
// that was written to compare ways to the disk: 500 clients, a connection each, upload
// files of 50 KiB, download them, ask whether they exist and delete them, and echo
// small messages. Every round gives each server a turn on the same disk, with a process
// of its own that was started for it, since a process never gives its threads back. What
// it writes is a table in Markdown, of medians; of threads, it is the most ever seen.
//
//	cd compare && GOFSBENCH=DIR go run ./gofsbench [-rounds 5] [-files 20000] [-clients 500] [-only REGEXP] [-dir DIR] [-fresh] [-json] [-- FLAGS OF nfsbox serve]
//
// $GOFSBENCH names the directory in which its programs FsServer and FsClient are; it is
// left out, and so is every ratio, if that is not set. nfsbox is built with cgo and the
// tag nfsbox_cthreads, or given by -server. docs/gofsbench.md says what is compared.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/nfsbox/nfsbox/compare/internal/serve"
)

// size is that of a file, in bytes, and echo that of a message which is echoed: as
// long as GoFsBench's.
const (
	size = 50 << 10
	echo = 39
)

type options struct {
	rounds, files, clients, threads int
	only, verbs, dir, server        string
	checksum                        string
	sync, http2, fresh, asJSON      bool
	flags                           []string // of nfsbox serve
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; figures are medians of them")
	flag.IntVar(&o.files, "files", 20000, "files that each verb is for; five times as many messages are echoed")
	flag.IntVar(&o.clients, "clients", 500, "clients, with a connection each")
	flag.IntVar(&o.threads, "threads", 32, "I/O threads of every pool")
	flag.StringVar(&o.only, "only", "", "run only servers whose names match this regular expression")
	flag.StringVar(&o.verbs, "verbs", strings.Join(verbs, ","), "run only these, in this order; what is downloaded must have been uploaded")
	flag.StringVar(&o.dir, "dir", "", "where the directory is made that is served; that for temporary files if empty")
	flag.BoolVar(&o.fresh, "fresh", false, "give every turn an ext4 of its own, newly made in a file in that directory; takes root")
	flag.StringVar(&o.server, "server", "", "the nfsbox to run; built if empty")
	flag.StringVar(&o.checksum, "checksum", "crc32c", "of every file, on both sides, by calls: crc32c, sha256 or blake3; plain HTTP and GoFsBench have none")
	flag.BoolVar(&o.sync, "sync", false, "have files and names on the disk before an upload is answered, which GoFsBench never does")
	flag.BoolVar(&o.http2, "http2", false, "speak HTTP/2, with all clients on one connection")
	flag.BoolVar(&o.asJSON, "json", false, "print a line of JSON for each measurement instead of the table")
	flag.Parse()
	o.flags = flag.Args()
	serve.Main(func(ctx context.Context) error { return compare(ctx, &o) })
}

func compare(ctx context.Context, o *options) (err error) {
	home, err := os.MkdirTemp(o.dir, "nfsbox-gofsbench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	if o.server == "" {
		if o.server, err = serve.Build(ctx, home, true); err != nil {
			return err
		}
	}
	if err := raiseFiles(); err != nil {
		return err
	}
	if !o.fresh {
		if err := scatter(home); err != nil {
			return err
		}
	}
	servers, err := contenders(o)
	if err != nil {
		return err
	}
	t := table{servers: servers, runs: make(map[string][]figure)}
	for round := range o.rounds {
		for i := range t.servers {
			s := &t.servers[(i+round)%len(t.servers)] // nobody is always the first
			if err := turn(ctx, o, home, s, t.add); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	if o.asJSON {
		return t.printJSON()
	}
	return t.print(o, home)
}

// turn starts a server on an empty directory, has every verb measured, and leaves
// nothing for the disk to do for those who come after.
func turn(ctx context.Context, o *options, home string, c *contender, add func(figure)) (err error) {
	dir, clean, err := o.ground(ctx, home)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, clean())
		syscall.Sync()
	}()
	s, err := c.start(ctx, o, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	for verb := range strings.SplitSeq(o.verbs, ",") {
		n := o.files
		if verb == "echo" && !c.echo {
			continue
		}
		if verb == "echo" {
			n *= 5
		}
		before, watch := s.CPU(), s.Watch()
		f, err := s.load(ctx, verb, n)
		most := watch()
		if err == nil && f.done != n {
			err = fmt.Errorf("%d of %d went well", f.done, n)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", verb, err)
		}
		f.Server, f.Verb, f.Threads = c.name, verb, most.Threads
		f.CPU = (s.CPU() - before).Seconds() * 1e6 / float64(n)
		add(f)
	}
	return nil
}

func (t *table) printJSON() error {
	e := json.NewEncoder(os.Stdout)
	for _, runs := range t.runs {
		for i := range runs {
			if err := e.Encode(&runs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
