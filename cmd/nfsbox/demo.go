package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/nfsbox/nfsbox/cmd/nfsbox/internal/demotree"
	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/base/rusage"
	"github.com/nfsbox/nfsbox/internal/server/daemon"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

type demoCmd struct {
	Dir string `arg:"" optional:"" name:"DIR" help:"The tree to serve; by default the Go installation's source tree, or one that is made up." type:"existingdir"`
	To  string `help:"Where the copy goes, and stays. By default it is removed in the end." type:"path"`
	show
}

func (*demoCmd) Help() string {
	return `Shows on real input what nfsbox does. It serves a tree over NFSv3 on loopback, copies it out with its own
client, many files at once, and compares every byte of the copy with the tree on disk, not over NFS. It
needs no root, no mount and no configuration, and leaves nothing behind.

  nfsbox demo
  nfsbox demo --json ~/src | tail -n 1`
}

// demoSummary is the last event of demo.
type demoSummary struct {
	Files    uint64  `json:"files"`
	Dirs     uint64  `json:"dirs"`
	Bytes    uint64  `json:"bytes"`
	Errors   uint64  `json:"errors"`
	Verified bool    `json:"verified"`
	Seconds  float64 `json:"seconds"`
	RPCs     uint64  `json:"rpcs"`
	MaxRSS   uint64  `json:"max_rss_bytes"`

	Differences uint64 `json:"differences"`
	Source      string `json:"source"`
	URL         string `json:"url"`
}

func (c *demoCmd) Run(e *env) (err error) {
	scratch, err := os.MkdirTemp("", "nfsbox-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	start := time.Now()
	tracker, err := c.tracker(e)
	if err != nil {
		return err
	}
	d := &demo{cmd: c, e: e, scratch: scratch, tracker: tracker, pool: new(bufpool.Pool)}
	runErr := d.run()
	if runErr != nil && d.sum.Errors == 0 {
		d.sum.Errors = 1
	}
	d.sum.Seconds = time.Since(start).Seconds()
	d.sum.MaxRSS = rusage.MaxRSS()
	if err := d.tracker.Finish(&d.sum); err != nil {
		runErr = errors.Join(runErr, fmt.Errorf("output: %w", err))
	}
	if runErr == nil && !c.JSON {
		runErr = d.print(e.stdout)
	}
	return runErr
}

// demo is a running demonstration.
type demo struct {
	cmd     *demoCmd
	e       *env
	scratch string
	tracker *progress.Tracker
	pool    *bufpool.Pool
	sum     demoSummary
}

func (d *demo) run() error {
	source, err := d.source()
	if err != nil {
		return err
	}
	d.sum.Source = source
	target := d.cmd.To
	if target == "" {
		target = filepath.Join(d.scratch, "copy")
	}
	if err := os.Mkdir(target, 0o700); err != nil {
		return fmt.Errorf("the copy's directory: %w", err)
	}
	if err := d.served(source, func(url string) error { return d.copy(url, target) }); err != nil {
		return err
	}
	return d.verify(source, target)
}

func (d *demo) source() (string, error) {
	if d.cmd.Dir != "" {
		return filepath.Abs(d.cmd.Dir)
	}
	if dir := demotree.GoSource(d.e.ctx); dir != "" {
		return dir, nil
	}
	dir := filepath.Join(d.scratch, "tree")
	if err := demotree.Make(dir); err != nil {
		return "", fmt.Errorf("make up a tree: %w", err)
	}
	return dir, nil
}

func (d *demo) served(dir string, do func(url string) error) error {
	ctx, stop := context.WithCancel(d.e.ctx)
	defer stop()
	ready := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- daemon.Serve(ctx, privately(dir, filepath.Join(d.scratch, "state")), daemon.World{
			Rand: d.e.rand,
		}, func(r daemon.Running) error {
			ready <- r.URL
			return nil
		})
	}()
	select {
	case err := <-ended:
		return fmt.Errorf("serve %s: %w", dir, cmp.Or(err, context.Cause(ctx))) // if err is nil, it was interrupted
	case d.sum.URL = <-ready:
	}
	err := do(d.sum.URL)
	stop()
	return errors.Join(err, <-ended)
}

// privately is a configuration that lets only this host read dir.
func privately(dir, state string) config.Config {
	c, x, yes := config.Default(), config.DefaultExport(), true
	c.Listen, c.StateDir, c.LocalIO = []string{"127.0.0.1:0"}, state, "off" // the demonstration is of the network
	x.Dir, x.ReadOnly = dir, &yes
	c.Exports = []config.Export{x}
	// The copy lies beside the state directory, and is protected no better.
	c.TrustStatePath = true
	return c
}

func (d *demo) copy(url, target string) (err error) {
	src, from, err := d.open(url)
	if err != nil {
		return err
	}
	defer closePlace(src, &err, &d.sum.RPCs)
	dst, to, err := d.open(target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	s, err := job.Copy(d.e.ctx, job.CopyOptions{
		Source: from, Dest: to, Pool: d.pool, Random: randReader(d.e.rand), Now: time.Now, Progress: d.tracker, More: true, Owner: true,
	})
	d.sum.Files, d.sum.Dirs, d.sum.Bytes, d.sum.Errors = s.Files+s.Hardlinks, s.Dirs, s.Bytes, s.Errors
	return asExit(s.ExitCode(err), err)
}

func (d *demo) verify(source, target string) (err error) {
	src, from, err := d.open(source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	dst, to, err := d.open(target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	s, err := job.Verify(d.e.ctx, job.VerifyOptions{Source: from, Dest: to, Pool: d.pool, Now: time.Now, Progress: d.tracker})
	d.sum.Differences = s.Differences
	d.sum.Errors += s.Errors
	d.sum.Verified = err == nil && s.Differences == 0 && s.Errors == 0 && d.sum.Errors == 0 && s.Files+s.Hardlinks == d.sum.Files
	return asExit(s.ExitCode(err), err)
}

func (d *demo) open(arg string) (*place.Place, job.Place, error) {
	p, err := place.Open(d.e.ctx, arg, place.Options{Follow: true})
	if err != nil {
		return nil, job.Place{}, err
	}
	root, _, err := p.FS.Root(d.e.ctx)
	if err != nil {
		return nil, job.Place{}, errors.Join(fmt.Errorf("%s: %w", arg, err), p.Close())
	}
	return p, job.Place{FS: p.FS, Handle: root}, nil
}

func asExit(status int, err error) error {
	if status == exitOK {
		return nil
	}
	return &exitError{status: status, err: err}
}

func (d *demo) print(w io.Writer) error {
	const column = 10
	_, err := io.WriteString(w, d.e.fold(fmt.Sprintf(`served    %s
as        %s
copied    %s files, %s directories, %s with %s RPCs
verified  every byte against the tree on disk: no differences
in        %.1f s, with at most %s of memory
`, progress.Clean(d.sum.Source), d.sum.URL, progress.Count(d.sum.Files), progress.Count(d.sum.Dirs), progress.Size(d.sum.Bytes),
		progress.Count(d.sum.RPCs), d.sum.Seconds, progress.Size(d.sum.MaxRSS)), column))
	return err
}
