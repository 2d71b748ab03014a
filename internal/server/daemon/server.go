package daemon

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/server/daemon/paths"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc/replycache"
)

// newServer makes the server, with the replies that the last one has left.
func (d *daemon) newServer() (err error) {
	d.replies = replycache.New(replycache.Options{
		PerClient: d.c.RepliesPerClient, Keep: time.Duration(d.c.RepliesKeep), MaxBytes: int64(d.c.RepliesBytes), Now: d.w.Now,
	})
	d.loadReplies()
	locks := filepath.Join(d.own, locksName)
	if err := paths.MakePrivate(locks); err != nil {
		return fmt.Errorf("state of the locks: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	local, err := d.localIO()
	if err != nil {
		return err
	}
	var cookie [8]byte
	d.w.Rand(cookie[:])
	o := nfsserver.Options{
		Exports: d.table, Log: d.log,
		MaxConns: d.c.MaxConnections, MaxCallsPerConn: d.c.MaxCalls, MaxRequestBytes: int64(d.c.MaxRequestBytes),
		MaxReplyBytes: int64(d.c.MaxReplyBytes), IdleTimeout: time.Duration(d.c.IdleTimeout),
		Replies: d.replies, SlowOp: config.SlowFloor, Sample: d.logs.Sample(), Observe: d.logs.Observe,
		Locks: d.c.Locks, MaxClientLocks: openFiles(d.c, fileLimit()) / lockShare, LockStateDir: locks, Grace: time.Duration(d.c.Grace),
		Hostname: host, Cookie: binary.LittleEndian.Uint64(cookie[:]), LocalIO: local, User: d.users,
	}
	if d.srv, err = nfsserver.New(o); err != nil && local != nil {
		return d.withoutLocalIO(o, err)
	}
	return err
}

// serve lets clients in, and returns when all listeners accept.
func (d *daemon) serve() {
	d.served = make(chan error, len(d.listeners)+len(d.api.listeners))
	var open sync.WaitGroup
	for i := range d.listeners {
		x := &d.listeners[i]
		d.serving++
		open.Add(1)
		x.open = sync.OnceFunc(open.Done)
		go func() {
			defer x.open()
			d.served <- x.serve(d.srv)
		}()
	}
	open.Wait()
	d.serveAPI()
}

// register enters the programs with the port mapper of this host, if it shall.
func (d *daemon) register(ctx context.Context) (err error) {
	if !d.c.RPCBind {
		return nil
	}
	if d.entered, err = d.srv.Register(ctx); err != nil {
		return fmt.Errorf("%w; start rpcbind, or leave rpcbind out and answer as one: portmap-listen", err)
	}
	for _, what := range d.entered.Left() {
		d.log.Warn("rpcbind leads clients to another server", slog.String("program", what))
	}
	return nil
}

func (d *daemon) unregister(ctx context.Context) error {
	if d.entered == nil {
		return nil
	}
	return d.entered.Close(ctx)
}
