package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"

	"github.com/nfsbox/nfsbox/internal/server/fileapi"
	"github.com/nfsbox/nfsbox/internal/server/iogate"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/dir"
)

// uploadsName is the file in the server's own folder that tells in which directories
// uploads are under way.
const uploadsName = "uploads"

// api is the file API: the same table as that of NFS, through the same gate.
type api struct {
	srv    *fileapi.Server // nil: none is served
	doors  []net.Listener
	tls    *certificates // nil: it does not speak TLS
	store  *dir.Store    // nil: there are paths alone
	lanes  *iogate.Lanes // of the store
	ended  sync.WaitGroup
	cancel context.CancelFunc // ends what works for the store by itself
}

// openAPI opens the file API, if there shall be one. It sweeps what uploads have
// left that were cut off by a crash.
func (d *daemon) openAPI(ctx context.Context) (err error) {
	a, x := &d.c.API, &d.api
	if !a.on() {
		return nil
	}
	secrets, err := a.read()
	if err != nil {
		return err
	}
	if err := d.bindAPI(ctx); err != nil {
		return err
	}
	o := fileapi.Options{
		Table: d.table, Callers: secrets.callers, Loopback: a.Loopback.caller(), MayLoopback: d.mayLoopback(), Whose: d.client, Cleartext: a.Cleartext, Limits: a.limits(),
		Ledger: filepath.Join(d.own, uploadsName), Now: d.w.Now,
		Report:  func(err error) { d.log.Warn("api", slog.Any("error", err)) },
		Observe: d.observeAPI, Slow: slowFloor, Sample: d.logs.sample(),
	}
	if secrets.tls != nil {
		x.tls = newCertificates(secrets.tls)
		o.TLS = x.tls.config()
	}
	if o.Store, err = d.openStore(ctx); err != nil {
		return err
	}
	x.srv, err = fileapi.New(ctx, o)
	return err
}

// mayLoopback is for fileapi.Options: who may call without a proof. It is nil if every
// program of this host may, since the operator has said as whom or believes them all,
// or nobody can tell whose they are.
func (d *daemon) mayLoopback() func(net.Conn) bool {
	l := d.c.API.Loopback
	doubted := slices.ContainsFunc(d.c.Exports, func(e Export) bool {
		return slices.ContainsFunc(e.rules(), func(c Client) bool { return !is(c.TrustLocal) })
	})
	if l == nil || !l.only || d.users == nil || !doubted {
		return nil
	}
	return func(nc net.Conn) bool { return d.users(nc) == nil } // root, or the server's own user
}

// openStore opens the store of content, if there shall be one, and begins to sweep
// what a crash has left in it.
func (d *daemon) openStore(ctx context.Context) (object.Store, error) {
	a, x := &d.c.API, &d.api
	if a.Store == "" {
		return nil, nil
	}
	x.lanes = d.gate.Export(storeLanes)
	s, err := dir.Open(a.Store, dir.Options{Create: true, MaxSize: int64(a.MaxFileSize), Gate: storeGate{x.lanes}, Rand: d.w.Rand})
	if err != nil {
		return nil, fmt.Errorf("api: the store of content: %w", err)
	}
	x.store = s
	start := d.w.Now()
	ctx, x.cancel = context.WithCancel(context.WithoutCancel(ctx))
	x.ended.Go(func() {
		for more := true; more; {
			var err error
			if _, more, err = s.Sweep(ctx, start); err != nil && ctx.Err() == nil {
				d.log.Warn("api: what a crash has left in the store of content", slog.Any("error", err))
				return
			}
		}
	})
	return s, nil
}

// storeLanes is the name of the store's way through the gate, beside those of
// exports, which begin with a slash.
const storeLanes = "store"

// storeGate lets the store through the gate as one client among those of exports.
type storeGate struct{ lanes *iogate.Lanes }

// Enter implements dir.Gate.
func (g storeGate) Enter(ctx context.Context, c dir.Class) error {
	return g.lanes.Enter(ctx, iogate.Class(c), "")
}

// Leave implements dir.Gate.
func (g storeGate) Leave(c dir.Class) { g.lanes.Leave(iogate.Class(c)) }

// inheritAPI takes those sockets of the service manager's for the file API that have
// the port of one of its addresses, and are not NFS' by their whole address.
func (d *daemon) inheritAPI() {
	d.doors = slices.DeleteFunc(d.doors, func(x door) bool {
		if x.l == nil || slices.Contains(d.c.Listen, x.addr().String()) || !slices.ContainsFunc(d.c.API.Listen, func(a string) bool { return samePort(a, x.addr()) }) {
			return false
		}
		d.api.doors = append(d.api.doors, x.l)
		return true
	})
}

// bindAPI opens those addresses of the file API that the service manager has not.
func (d *daemon) bindAPI(ctx context.Context) error {
	x, inherited := &d.api, len(d.api.doors)
	for _, address := range d.c.API.Listen {
		if slices.ContainsFunc(x.doors[:inherited], func(l net.Listener) bool { return samePort(address, l.Addr()) }) {
			continue
		}
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, family("tcp", address), address)
		if err != nil {
			return fmt.Errorf("api: %w", listenError("tcp", "api", address, err))
		}
		x.doors = append(x.doors, l)
	}
	return nil
}

func samePort(address string, of net.Addr) bool {
	_, one, err := net.SplitHostPort(address)
	_, two, e := net.SplitHostPort(of.String())
	return err == nil && e == nil && one == two
}

// serveAPI opens the doors of the file API. What its server returns goes where that
// of NFS' does.
func (d *daemon) serveAPI() {
	scheme := "http"
	if d.api.tls != nil {
		scheme = "https"
	}
	for _, l := range d.api.doors {
		d.serving++
		go func() { d.served <- d.api.srv.Serve(l) }()
		d.log.Info("api", slog.String("url", scheme+"://"+l.Addr().String()))
	}
}

// warnAPI says what an operator of the file API may not expect.
func (d *daemon) warnAPI() {
	a := &d.c.API
	if !a.on() {
		return
	}
	switch open := slices.ContainsFunc(d.api.doors, func(l net.Listener) bool { return elsewhere(l.Addr().String()) }); {
	case !open || d.api.tls != nil:
	case a.Cleartext:
		d.log.Warn("api: tokens cross the network in clear: whoever listens has them; this is for a proxy with TLS in front")
	default:
		d.log.Warn("api: there is no TLS, so tokens from other hosts are refused; name a certificate with --api-tls-cert")
	}
	for i := range d.c.Exports {
		if e := &d.c.Exports[i]; slices.ContainsFunc(e.rules(), func(c Client) bool { return is(c.Secure) }) {
			d.log.Warn("api: an export that is secure refuses callers of the file API, whose ports are 1024 or above", slog.String("export", e.Path))
		}
	}
}

// shutdown lets calls finish until ctx ends, and then cuts them off.
func (x *api) shutdown(ctx context.Context) error {
	if x.srv == nil {
		return nil
	}
	err := x.srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(errCutOff, x.srv.Close())
	}
	return err
}

// errCutOff says that clients of the file API have not got their answers.
var errCutOff = errors.New("calls of the file API were cut off")

// close gives back what openAPI has taken. Calls that were cut off get apiEnd to
// notice, so that they take their temporaries away while the file systems are open.
func (x *api) close() (err error) {
	if x.srv != nil {
		err = errors.Join(x.srv.Close(), x.wait())
	}
	for _, l := range x.doors {
		if e := l.Close(); !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	if x.store != nil {
		x.cancel()
		x.ended.Wait()
		err = errors.Join(err, x.store.Close())
	}
	if x.lanes != nil {
		x.lanes.Close()
	}
	return err
}

// wait waits until no call is in progress, for apiEnd at most.
func (x *api) wait() error {
	ctx, cancel := context.WithTimeout(context.Background(), apiEnd)
	defer cancel()
	if err := x.srv.Wait(ctx); err != nil {
		return fmt.Errorf("calls of the file API are still at work after %v: %w", apiEnd, err)
	}
	return nil
}
