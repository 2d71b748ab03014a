package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/nfsbox/nfsbox/compare/internal/disk"
	"github.com/nfsbox/nfsbox/compare/internal/serve"
	"github.com/nfsbox/nfsbox/internal/testkit/ganesha"
)

// server is one that serves the home, by a URL without a path behind it.
type server struct {
	*serve.Process
	name string
	url  func(path string) string
}

// test is one way of a tree, and those who take part in it.
type test struct {
	way  string
	runs []run
}

// run is one mover on its way. The places are given a path of this host.
type run struct {
	mover
	from, to func(path string) string
	server   *server // nil: none
}

func local(path string) string { return path }

// tests are the ways: local to local by everybody, and to and from the servers by ours. In the
// second they are interleaved, so that to can be held against from.
func tests(peers []mover, servers []server) []test {
	near := test{way: "local to local"}
	for _, m := range peers {
		near.runs = append(near.runs, run{m, local, local, nil})
	}
	far := test{way: "NFS"}
	for _, m := range peers {
		if m.syncs != syncsAll { // it needs a mount
			continue
		}
		for i := range servers {
			s := &servers[i]
			from, to := m, m
			from.name, to.name = m.name+" from "+s.name, m.name+" to "+s.name
			to.syncs = "as before; the server each change (RFC 1813, 4.8)"
			far.runs = append(far.runs, run{from, s.url, local, s}, run{to, local, s.url, s})
		}
	}
	return []test{near, far}
}

// run has everybody copy the tree in turn.
func (t *test) run(ctx context.Context, o *options, src *tree) ([]row, error) {
	figures := make([][]figure, len(t.runs))
	for round := range o.rounds {
		for _, i := range serve.Turns(len(t.runs), round) {
			r := &t.runs[i]
			var p *serve.Process
			if r.server != nil {
				p = r.server.Process
			}
			// A new name for each, and none is removed before the end: an ext4 does not use an inode
			// again that was freed in the last minute, but looks each of them through for each new file,
			// which took up to two thirds of a server's time. nfs-ganesha, too, remembers what was removed.
			o.copies++
			dest := filepath.Join(o.data, fmt.Sprintf("copy-%d", o.copies))
			f, err := r.turn(ctx, r.from(src.path), r.to(dest), dest, p)
			if err == nil {
				err = src.same(dest)
			}
			if err := errors.Join(err, disk.Sync(o.data)); err != nil {
				return nil, fmt.Errorf("%s: %w", r.name, err)
			}
			figures[i] = append(figures[i], f)
		}
	}
	rows := make([]row, len(t.runs))
	for i := range rows {
		rows[i] = row{
			Tree: src.name, Way: t.way, Mover: t.runs[i].name, Syncs: t.runs[i].syncs,
			Wall:   serve.Median(figures[i], func(f *figure) float64 { return f.Wall }),
			Disk:   serve.Median(figures[i], func(f *figure) float64 { return f.Disk }),
			CPU:    serve.Median(figures[i], func(f *figure) float64 { return f.CPU }),
			Server: serve.Median(figures[i], func(f *figure) float64 { return f.Server }),
		}
	}
	return rows, nil
}

// startServers starts ours, and nfs-ganesha if it is here, over the data. stop ends those that run.
func startServers(ctx context.Context, o *options) (all []server, stop func() error, err error) {
	stop = func() (err error) {
		for i := range all {
			err = errors.Join(err, all[i].Stop())
		}
		return err
	}
	state := filepath.Join(o.home, "state")
	p, u, err := serve.Ours(exec.CommandContext(ctx, o.binary, "serve", "--listen", "127.0.0.1:0", "--state-dir", state, o.data))
	if err != nil {
		return all, stop, err
	}
	all = append(all, server{p, "nfsbox", func(path string) string { return u.JoinPath(o.below(path)).String() }})
	if err := ganesha.Missing(); err != nil {
		fmt.Fprintln(os.Stderr, "LEFT OUT: nfs-ganesha:", err)
		return all, stop, nil
	}
	p, g, err := serve.Ganesha(ctx, o.home, o.data)
	if err == nil {
		all = append(all, server{p, "nfs-ganesha", g.URL})
	}
	return all, stop, err
}

// below is a path of this host as one below the data.
func (o *options) below(path string) string {
	below, err := filepath.Rel(o.data, path)
	if err != nil {
		return path
	}
	return below
}
