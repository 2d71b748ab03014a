package daemon

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc/replycache"
)

// locksName is the folder in the server's own that tells who holds locks.
const locksName = "locks"

// newServer makes the server, with the replies that the last one has left.
func (d *daemon) newServer() (err error) {
	d.replies = replycache.New(replycache.Options{
		PerClient: d.c.RepliesPerClient, Keep: time.Duration(d.c.RepliesKeep), MaxBytes: int64(d.c.RepliesBytes), Now: d.w.Now,
	})
	d.loadReplies()
	d.slow = newSlowLog(d.log, d.w.Now, time.Duration(d.c.Slow))
	locks := filepath.Join(d.own, locksName)
	if err := makePrivate(locks); err != nil {
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
		Replies: d.replies, SlowOp: slowFloor, Sample: d.logs.sample(), Observe: d.observe,
		Locks: d.c.Locks, MaxClientLocks: openFiles(d.c, fileLimit()) / lockShare, LockStateDir: locks, Grace: time.Duration(d.c.Grace),
		Hostname: host, Cookie: binary.LittleEndian.Uint64(cookie[:]), LocalIO: local, User: d.users,
	}
	if d.srv, err = nfsserver.New(o); err != nil && local != nil {
		return d.withoutLocalIO(o, err)
	}
	return err
}

// serve opens the doors to clients, and returns when all are open.
func (d *daemon) serve() {
	d.served = make(chan error, len(d.doors)+len(d.api.doors))
	var open sync.WaitGroup
	for i := range d.doors {
		x := &d.doors[i]
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

// serve answers those who come in by a door.
func (x *door) serve(s *nfsserver.Server) error {
	switch {
	case x.l != nil && x.portmap:
		return s.ServePortmap(&entrance{x.l, x.open})
	case x.l != nil:
		return s.Serve(&entrance{x.l, x.open})
	case x.portmap:
		return s.ServePortmapPacket(&packetEntrance{x.pc, x.open})
	}
	return s.ServePacket(&packetEntrance{x.pc, x.open})
}

// entrance is a listener that says when the server has begun to accept.
type entrance struct {
	net.Listener
	open func()
}

// Accept implements net.Listener.
func (e *entrance) Accept() (net.Conn, error) {
	e.open()
	return e.Listener.Accept()
}

// packetEntrance is an entrance for datagrams.
type packetEntrance struct {
	net.PacketConn
	open func()
}

// ReadFrom implements net.PacketConn.
func (e *packetEntrance) ReadFrom(p []byte) (int, net.Addr, error) {
	e.open()
	return e.PacketConn.ReadFrom(p)
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

// unregister takes out what register has entered.
func (d *daemon) unregister(ctx context.Context) error {
	if d.entered == nil {
		return nil
	}
	return d.entered.Close(ctx)
}
