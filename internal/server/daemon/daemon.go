package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/iogate"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc/replycache"
)

// World is what a server gets from its surroundings. Only Rand is required.
type World struct {
	Rand func([]byte)     // fills its argument with randomness
	Now  func() time.Time // time.Now if nil
	Log  io.Writer        // nil discards

	// File is the configuration's path, by which the server's own folder in
	// the state directory is named; "" names it by the directory served.
	File string

	// Reload makes the server call Reread and change what can be changed under
	// way; see [Serve]. Both nil: it never does.
	Reload <-chan os.Signal
	Reread func() (*Config, error)

	Version string // of the program, as the live view shows it

	// Manager has started the process, and may have opened its listeners.
	Manager Manager

	// Alone says that the process is this server's: limits and capabilities
	// that are the process' are then set as the configuration needs them.
	Alone bool
}

// Running is what can be known of a server that has begun to listen.
type Running struct {
	URL  string   // for a client on this host: "nfs://127.0.0.1:2049/"
	Addr net.Addr // of the first listener
}

// Serve serves until ctx ends, and then lets calls that are under way finish,
// for at most DrainTimeout. ready is called once, when clients can connect; its
// error ends the server. The result is nil if all ended as it should.
//
// A reload replaces exports and their rules, the log's level and the threshold
// for slow calls, and who may use the file API; connections stay. What else has
// changed is named in the log and waits for the next start. If anything is wrong
// with the new configuration, all stays as it was.
func Serve(ctx context.Context, c Config, w World, ready func(Running) error) (err error) {
	d := &daemon{w: w}
	d.sites.ended, d.sites.end = context.WithCancel(context.WithoutCancel(ctx))
	if d.w.Now == nil {
		d.w.Now = time.Now
	}
	if d.w.Log == nil {
		d.w.Log = io.Discard
	}
	if err := c.complete(); err != nil {
		return err
	}
	d.c = &c
	defer func() { err = errors.Join(err, d.close()) }()
	d.startLog()
	if err := d.privateOutside(d.c); err != nil {
		return err // before anything is made in a tree that clients can write to
	}
	if err := d.openLogs(); err != nil {
		return err
	}
	if err := d.open(ctx); err != nil {
		return err
	}
	return d.run(ctx, ready)
}

// daemon is a server and all that belongs to it.
type daemon struct {
	w    World
	c    *Config // in force
	log  *slog.Logger
	logs logs

	own     string   // the server's own folder in the state directory
	held    *os.File // the lock of that folder, while it is open
	key     export.Key
	gate    *iogate.Gate
	locks   localfs.Locks // of all directories, which may overlap
	sites   sites
	table   *export.Table
	replies *replycache.Cache
	slow    *slowLog
	srv     *nfsserver.Server
	doors   []door
	users   func(net.Conn) *uint32 // whose a connection from this host is; nil: nobody can tell
	api     api
	web     web
	control *control              // nil: it is not there
	entered *nfsserver.Registered // with rpcbind; nil: nothing is

	served  chan error // what each door's Serve returned
	serving int        // how many of them have not

	reloading chan struct{} // closed when the last reload has been prepared; nil: there was none
}

// open does all that must succeed before clients can be let in. What it has
// opened, close closes.
func (d *daemon) open(ctx context.Context) (err error) {
	if d.w.Alone {
		d.prepareProcess()
	}
	if d.own, d.key, err = d.state(); err != nil {
		return err
	}
	if err := d.holdState(ctx); err != nil {
		return err
	}
	kind, err := iogate.ParseKind(d.c.IOPool)
	if err != nil {
		return err
	}
	d.gate, err = iogate.New(iogate.Options{
		Kind: kind, Threads: d.c.IOThreads, Priority: d.c.IOPriorityThreads, Affinity: d.c.IOAffinity, Queue: d.c.IOQueue,
	})
	if err != nil {
		return err
	}
	if err := d.listen(ctx); err != nil {
		return err
	}
	d.findUsers()
	d.c.squash(d.onlyKnown())
	if err := d.openTable(); err != nil {
		return err
	}
	if err := d.newServer(); err != nil {
		return err
	}
	err = d.openAPI(ctx)
	if err == nil {
		err = d.openWeb(ctx)
	}
	if err != nil {
		return errors.Join(err, d.srv.Close())
	}
	d.openControl()
	return nil
}

// run serves from the moment that clients may come until all are gone.
func (d *daemon) run(ctx context.Context, ready func(Running) error) error {
	d.warn()
	if err := d.dropReplies(); err != nil {
		return errors.Join(err, d.srv.Close())
	}
	d.serve()
	if err := d.register(ctx); err != nil {
		return errors.Join(err, d.drain(context.WithoutCancel(ctx)))
	}
	d.web.serving.Store(true)
	r := d.running()
	if err := ready(r); err != nil {
		return errors.Join(err, d.drain(context.WithoutCancel(ctx)))
	}
	d.notify("READY=1\nSTATUS=Serving " + r.URL)
	ping, stop := d.w.Manager.watchdog()
	defer stop()
	hangup, prepared := d.w.Reload, (<-chan *preparation)(nil)
	if d.w.Reread == nil {
		hangup = nil
	}
	for {
		select {
		case <-ctx.Done():
			return d.drain(context.WithoutCancel(ctx))
		case err := <-d.served: // a door that ended by itself
			d.serving--
			return errors.Join(err, d.drain(context.WithoutCancel(ctx)))
		case <-hangup: // the next one is taken when this one is over
			hangup, prepared = nil, d.reload()
		case p := <-prepared:
			d.reloaded(p)
			hangup, prepared = d.w.Reload, nil
		case <-ping:
			d.notify("WATCHDOG=1")
		}
	}
}

// running is what ready is told.
func (d *daemon) running() Running {
	addr := d.doors[0].addr()
	return Running{URL: address(addr, d.c.Exports[0].Path), Addr: addr}
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

// drain ends the server, at first in good order, and leaves its replies to the
// next one.
func (d *daemon) drain(ctx context.Context) error {
	d.notify("STOPPING=1\nSTATUS=Finishing calls")
	d.web.draining.Store(true)
	limit := time.Duration(d.c.DrainTimeout)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// Side by side: a port mapper that does not answer takes no time from calls.
	api, left := make(chan error, 1), make(chan error, 1)
	go func() { api <- d.api.shutdown(ctx) }()
	go func() { left <- d.unregister(ctx) }()
	var err error
	for _, e := range []error{d.srv.Shutdown(ctx), <-api} {
		if e != nil {
			err = errors.Join(err, fmt.Errorf("calls were cut off after %v: %w", limit, e))
		}
	}
	for ; d.serving > 0; d.serving-- {
		err = errors.Join(err, unlessClosed(<-d.served))
	}
	return errors.Join(err, <-left, d.saveReplies())
}

// close gives back what open has taken, the last first. The server has ended, or
// never begun.
func (d *daemon) close() (err error) {
	err = errors.Join(d.control.close(), d.web.close(), d.api.close(), d.closeDoors())
	if d.slow != nil {
		d.slow.close()
	}
	d.sites.end()
	d.abandonReload()
	err = errors.Join(err, d.sites.close())
	if d.gate != nil {
		err = errors.Join(err, d.gate.Close())
	}
	if d.held != nil {
		err = errors.Join(err, d.held.Close())
	}
	return errors.Join(err, d.logs.close())
}

// unlessClosed is err, unless it is the ordinary end of a server.
func unlessClosed(err error) error {
	if errors.Is(err, nfsserver.ErrClosed) || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// identity is what the server's own folder in the state directory is named by.
func (d *daemon) identity() (string, error) {
	if d.w.File != "" {
		return filepath.Abs(d.w.File)
	}
	return realDir(d.c.Exports[0].Dir)
}
