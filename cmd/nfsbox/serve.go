package main

import (
	"fmt"
	"log/slog"

	"github.com/nfsbox/nfsbox/internal/daemon"
)

type serveCmd struct {
	Dir      string `arg:"" name:"DIR" help:"The directory to serve." type:"existingdir"`
	Listen   string `default:"127.0.0.1:2049" help:"Address and port, of NFS, MOUNT and portmap alike; port 0 takes a free one."`
	Export   string `default:"/" help:"The path under which clients find it."`
	RO       bool   `name:"ro" help:"Refuse every change."`
	StateDir string `help:"Where the key of the handles, and the map of handles if one is needed, live." type:"path"`
	Handles  string `default:"auto" enum:"auto,kernel,map" help:"What file handles are made of: ${enum}."`
}

func (*serveCmd) Help() string {
	return `Serves DIR over NFSv3 until it is interrupted. NFS, MOUNT and a portmapper answer on one port; the
first line on stdout is the URL. A first SIGINT or SIGTERM lets calls in flight finish, a second one
ends at once.

  nfsbox serve ./photos
  mount -t nfs -o vers=3,nolock,port=2049,mountport=2049 127.0.0.1:/ /mnt

Handles stay valid over renames and restarts. They are the kernel's where its file systems and the
process' rights allow, which takes root; elsewhere a map of them is kept in the state directory
(/var/lib/nfsbox for root, else $XDG_STATE_HOME/nfsbox or ~/.local/state/nfsbox).

Run as root, files are opened and made with the rights of the calling user, as the client states them.
Run as anyone else, everything belongs to that one. Whoever can reach the port can mount: listen on
loopback, or behind a firewall.`
}

func (c *serveCmd) Run(e *env) error {
	err := daemon.Serve(e.ctx, daemon.Config{
		Dir: c.Dir, Listen: c.Listen, Export: c.Export, ReadOnly: c.RO, StateDir: c.StateDir, Handles: c.Handles,
		Rand: e.rand, Log: slog.New(slog.NewTextHandler(e.stderr, nil)),
	}, func(r daemon.Running) error {
		_, err := fmt.Fprintln(e.stdout, r.URL)
		return err
	})
	if err != nil {
		return &exitError{status: exitUsage, err: err}
	}
	return nil
}
