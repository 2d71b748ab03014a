package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/localfs"
	"github.com/nfsbox/nfsbox/nfsserver"
)

// drainTime is how long calls under way may take to finish once the daemon is
// told to end. What takes longer is cut off, and Serve says so.
const drainTime = 10 * time.Second

// Config says what to serve, and how.
type Config struct {
	Dir      string // the directory
	Listen   string // address and port; port 0 takes a free one
	Export   string // the path under which clients find it; "" is "/"
	ReadOnly bool   // refuse every change

	// StateDir is where the key of the handles and their map live; "" is the
	// user's own: see DefaultStateDir.
	StateDir string
	// Handles says what handles are made of: "auto" or "", "kernel", "map".
	Handles string
	// LocalWriters leaves out the attributes from before a change, for a
	// directory that programs of this host change as well.
	LocalWriters bool

	Rand func([]byte) // fills its argument with randomness; required
	Log  *slog.Logger // nil discards
}

// Running is what can be known of a server that has begun to listen.
type Running struct {
	URL  string   // for a client on this host: "nfs://127.0.0.1:2049/"
	Addr net.Addr // of the listener
}

// Serve serves until ctx ends, and then lets calls that are under way finish,
// for at most ten seconds. ready is called once, when clients can connect; its
// error ends the server. The result is nil if all ended as it should.
func Serve(ctx context.Context, c Config, ready func(Running) error) (err error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Export == "" {
		c.Export = "/"
	}
	fs, table, err := c.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fs.Close()) }()
	srv, err := nfsserver.New(nfsserver.Options{Exports: table, Log: c.Log})
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	c.warn(fs, l.Addr())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	err = ready(Running{URL: address(l.Addr(), c.Export), Addr: l.Addr()})
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-served:
			return errors.Join(err, srv.Close())
		}
	}
	return errors.Join(err, drain(context.WithoutCancel(ctx), srv), unlessClosed(<-served))
}

// open opens the directory and makes the table that exports it.
func (c *Config) open() (*localfs.FS, *export.Table, error) {
	mode, err := handleMode(c.Handles)
	if err != nil {
		return nil, nil, err
	}
	state, key, err := c.state()
	if err != nil {
		return nil, nil, err
	}
	fs, err := localfs.New(c.Dir, localfs.Options{
		Handles: mode, StateDir: state, ReadOnly: c.ReadOnly, LocalWriters: c.LocalWriters, Rand: c.Rand,
		Report: func(err error) { c.Log.Warn("the directory", slog.String("dir", c.Dir), slog.Any("error", err)) },
	})
	if err != nil {
		return nil, nil, err
	}
	table, err := export.NewTable(key, export.Export{Path: c.Export, FS: fs, ReadOnly: c.ReadOnly})
	if err != nil {
		return nil, nil, errors.Join(err, fs.Close())
	}
	return fs, table, nil
}

func handleMode(s string) (localfs.Mode, error) {
	for _, m := range []localfs.Mode{localfs.HandlesAuto, localfs.HandlesKernel, localfs.HandlesMap} {
		if s == m.String() || s == "" {
			return m, nil
		}
	}
	return 0, fmt.Errorf("handles %q: not one of auto, kernel and map", s)
}

// warn says what an operator may not expect.
func (c *Config) warn(fs *localfs.FS, addr net.Addr) {
	if fs.Squashed() {
		c.Log.Warn("not running as root: whatever callers do is done, and owned, by this user; what they may is judged by the mode bits")
	}
	if a, ok := addr.(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		c.Log.Warn("everybody who can reach the address may mount the export", slog.Any("address", addr))
	}
}

// address is the URL at which a client on this host finds the export.
func address(addr net.Addr, path string) string {
	host := addr.String()
	if a, ok := addr.(*net.TCPAddr); ok && a.IP.IsUnspecified() {
		host = net.JoinHostPort("127.0.0.1", fmt.Sprint(a.Port))
	}
	u := url.URL{Scheme: "nfs", Host: host, Path: path}
	return u.String()
}

// drain ends the server, at first in good order.
func drain(ctx context.Context, srv *nfsserver.Server) error {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		return fmt.Errorf("calls were cut off after %v: %w", drainTime, err)
	}
	return nil
}

// unlessClosed is err, unless it is the ordinary end of a server.
func unlessClosed(err error) error {
	if errors.Is(err, nfsserver.ErrClosed) {
		return nil
	}
	return err
}
