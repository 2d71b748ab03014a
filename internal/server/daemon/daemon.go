package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/server/daemon/ops"
	"github.com/nfsbox/nfsbox/internal/server/iogate"
	"github.com/nfsbox/nfsbox/internal/server/upstream"
	"github.com/nfsbox/nfsbox/nfsserver"
)

// Serve serves until ctx ends, and then lets calls that are under way finish,
// for at most DrainTimeout. ready is called once, when clients can connect; its
// error ends the server. The result is nil if all ended as it should.
//
// A reload replaces exports and their rules, the log's level and the threshold
// for slow calls, and who may use the file API; connections stay. What else has
// changed is named in the log and waits for the next start. If anything is wrong
// with the new configuration, all stays as it was.
func Serve(ctx context.Context, c config.Config, w World, ready func(Running) error) (err error) {
	d := &daemon{w: w}
	d.sites.ended, d.sites.end = context.WithCancel(context.WithoutCancel(ctx))
	if d.w.Now == nil {
		d.w.Now = time.Now
	}
	if d.w.Log == nil {
		d.w.Log = io.Discard
	}
	if err := c.Complete(); err != nil {
		return err
	}
	d.c = &c
	defer func() { err = errors.Join(err, d.close()) }()
	d.logs = ops.NewLogs(&d.c.Log, d.w.Log, d.w.Now)
	d.log = d.logs.Logger()
	if err := d.privateOutside(d.c); err != nil {
		return err // before anything is made in a tree that clients can write to
	}
	if err := d.logs.Open(&d.c.Log, time.Duration(d.c.Slow)); err != nil {
		return err
	}
	d.log = d.logs.Logger()
	d.refusals.Log, d.refusals.Most = d.log, maxRefusals
	if err := d.open(ctx); err != nil {
		return err
	}
	return d.run(ctx, ready)
}

// open does all that must succeed before clients can be let in. What it has
// opened, close closes.
func (d *daemon) open(ctx context.Context) (err error) {
	if d.w.Alone {
		prepareProcess(d.c, d.log)
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
	d.c.SquashUnsaid(d.onlyKnown())
	d.probe = upstream.NewProbe(d.w.Rand)
	if err := d.openTable(); err != nil {
		return err
	}
	d.logs.SetNamer(d.pathOf)
	if d.c.HTTP != "" {
		d.logs.Watch()
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

// run serves until the end: from when clients are let in until all have gone.
func (d *daemon) run(ctx context.Context, ready func(Running) error) error {
	d.tellBegun()
	d.warn()
	if err := d.dropReplies(); err != nil {
		return errors.Join(err, d.srv.Close())
	}
	d.serve()
	if err := d.register(ctx); err != nil {
		return errors.Join(err, d.drain(ctx, err))
	}
	d.web.Serving()
	r := d.running()
	if err := ready(r); err != nil {
		return errors.Join(err, d.drain(ctx, err))
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
			return d.drain(ctx, context.Cause(ctx))
		case err := <-d.served: // a listener that ended by itself
			d.serving--
			return errors.Join(err, d.drain(ctx, err))
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

// drain ends the server: calls under way may finish for DrainTimeout, then they are cut
// off. It leaves the remembered replies to the next server. why it ends is for the log.
func (d *daemon) drain(ctx context.Context, why error) (err error) {
	d.tellStage(stageEnding)
	ended := d.tellDrain(why)
	defer func() { ended(err) }()
	d.notify("STOPPING=1\nSTATUS=Finishing calls")
	d.web.Draining()
	limit := time.Duration(d.c.DrainTimeout)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	// Side by side: a port mapper that does not answer takes no time from calls.
	api, left := make(chan error, 1), make(chan error, 1)
	go func() { api <- d.api.shutdown(ctx) }()
	go func() { left <- d.unregister(ctx) }()
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

// close closes what open has opened, the last first. The server has ended, or never begun.
func (d *daemon) close() (err error) {
	err = errors.Join(d.control.Close(), d.web.Close(), d.api.close(), d.closeListeners())
	d.logs.EndCalls() // while the paths of their objects are known
	d.sites.end()
	d.abandonReload()
	err = errors.Join(err, d.sites.close())
	if d.gate != nil {
		err = errors.Join(err, d.gate.Close())
	}
	if d.held != nil {
		err = errors.Join(err, d.held.Close())
	}
	return errors.Join(err, d.logs.Close())
}

// unlessClosed is err, or nil if that is the ordinary end of a server.
func unlessClosed(err error) error {
	if errors.Is(err, nfsserver.ErrClosed) || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
