package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/nfsbox/nfsbox/compare/internal/serve"
	"github.com/nfsbox/nfsbox/compare/servers/load"
	"github.com/nfsbox/nfsbox/internal/testkit/ganesha"
)

// kind is a server that can be started.
type kind struct {
	name  string
	start func(context.Context) (*server, error)
}

// names are those of the kinds, in their order.
var names []string

// server is one that runs.
type server struct {
	*serve.Process
	addr, url string
}

// kinds are the servers that can be had here; the first is ours.
func kinds(home, export, binary string, flags []string) []kind {
	all := []kind{{"ours", func(ctx context.Context) (*server, error) { return nfsbox(ctx, home, export, binary, flags) }}}
	if before := os.Getenv("NFSBOX_BEFORE"); before != "" {
		all = append(all, kind{"ours before", func(ctx context.Context) (*server, error) {
			return nfsbox(ctx, filepath.Join(home, "before"), export, before, flags)
		}})
	}
	if err := ganesha.Missing(); err != nil {
		fmt.Fprintln(os.Stderr, "LEFT OUT: nfs-ganesha:", err)
	} else {
		all = append(all, kind{"ganesha", func(ctx context.Context) (*server, error) { return startGanesha(ctx, home, export) }})
	}
	if unfsd := os.Getenv("UNFSD"); unfsd == "" {
		fmt.Fprintln(os.Stderr, "LEFT OUT: unfs3, of which $UNFSD names the binary")
	} else {
		all = append(all, kind{"unfs3", func(ctx context.Context) (*server, error) { return unfs3(ctx, home, export, unfsd) }})
	}
	for _, k := range all {
		names = append(names, k.name)
	}
	return all
}

func nfsbox(ctx context.Context, home, export, binary string, flags []string) (*server, error) {
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--state-dir", filepath.Join(home, "state")}, flags...)
	p, u, err := serve.Ours(exec.CommandContext(ctx, binary, append(args, export)...))
	if err != nil {
		return nil, err
	}
	return &server{p, u.Host, u.String()}, nil
}

func startGanesha(ctx context.Context, home, export string) (*server, error) {
	p, g, err := serve.Ganesha(ctx, home, export)
	if err != nil {
		return nil, err
	}
	return &server{p, fmt.Sprintf("127.0.0.1:%d", g.NFS), g.URL(export)}, nil
}

func unfs3(ctx context.Context, home, export, unfsd string) (*server, error) {
	dir, err := os.MkdirTemp(home, "unfs3")
	if err != nil {
		return nil, err
	}
	ports, err := serve.Ports(2)
	if err != nil {
		return nil, err
	}
	table := filepath.Join(dir, "exports")
	if err := os.WriteFile(table, fmt.Appendf(nil, "%s 127.0.0.1(rw,no_root_squash,insecure)\n", export), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, unfsd, "-d", "-p", "-t", "-l", "127.0.0.1", "-n", fmt.Sprint(ports[0]), "-m", fmt.Sprint(ports[1]), "-e", table)
	p, err := serve.Peer(cmd, func() bool { return serve.Accepts(fmt.Sprintf("127.0.0.1:%d", ports[1])) })
	if err != nil {
		return nil, err
	}
	return &server{
		p, fmt.Sprintf("127.0.0.1:%d", ports[0]),
		fmt.Sprintf("nfs://127.0.0.1%s?nfsport=%d&mountport=%d", export, ports[0], ports[1]),
	}, nil
}

// tree makes what is served. The scratch file is filled in pieces as long as those that
// overwrite it. Linux keeps a file that is written in large pieces in large folios of the
// page cache (ext4 since 6.16), and for each 4 KiB that is then written to it ext4 walks
// all blocks of the folio: the same 25 us more an operation of every server, which would
// hide the servers.
func tree(dir string) error {
	err := errors.Join(
		fill(filepath.Join(dir, load.File), load.FileSize, 1<<20),
		fill(filepath.Join(dir, load.Scratch), load.FileSize, load.WriteSize))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, load.Small), 0o755); err != nil {
		return err
	}
	for i := range load.SmallFiles {
		if err := fill(filepath.Join(dir, load.Small, load.Name(i)), load.SmallSize, load.SmallSize); err != nil {
			return err
		}
	}
	return nil
}

func fill(name string, size, piece int) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	block := make([]byte, piece)
	for i := range block {
		block[i] = byte(i * 7)
	}
	for ; size > 0; size -= len(block) {
		if _, err := f.Write(block[:min(size, len(block))]); err != nil {
			return err
		}
	}
	return nil
}

// crowd makes a directory of n empty files, if it is not there yet.
func crowd(dir string, n int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, entry(n-1))); err == nil {
		return nil
	}
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, entry(i)), nil, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func entry(i int) string { return fmt.Sprintf("a-file-of-the-usual-length-%07d", i) }
