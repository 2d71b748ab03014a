package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/server/fileapi"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/dir"
	"github.com/nfsbox/nfsbox/vfs"
)

// uploadsName is the file in the server's own folder that tells in which directories
// uploads are under way.
const uploadsName = "uploads"

// openAPI opens the file API, if there shall be one. It sweeps what uploads have
// left that were cut off by a crash.
func (d *daemon) openAPI(ctx context.Context) (err error) {
	a, x := &d.c.API, &d.api
	if !a.On() {
		return nil
	}
	secrets, err := readSecrets(a)
	if err != nil {
		return err
	}
	if err := d.bindAPI(ctx); err != nil {
		return err
	}
	o := fileapi.Options{
		Table: d.table, Callers: secrets.callers, Loopback: callerOf(a.Loopback), MayLoopback: d.mayLoopback(), Whose: d.client, Cleartext: a.Cleartext, NoSearch: !a.Search, Limits: limitsOf(d.c, fileLimit()),
		Ledger: filepath.Join(d.own, uploadsName), Now: d.w.Now, Rand: d.w.Rand,
		Report:  func(err error) { d.log.Warn("api", slog.Any("error", err)) },
		Denied:  d.denied,
		Observe: d.logs.ObserveAPI, Slow: config.SlowFloor, Sample: d.logs.Sample(),
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

// mayLoopback is for fileapi.Options: whether a connection may call without a proof. It is
// nil if every program of this host may: the configuration says as which user they call,
// or trusts them all, or the kernel does not report users.
func (d *daemon) mayLoopback() func(net.Conn) bool {
	l := d.c.API.Loopback
	doubted := slices.ContainsFunc(d.c.Exports, func(e config.Export) bool {
		return slices.ContainsFunc(e.Rules(), func(c config.Client) bool { return !config.IsSet(c.TrustLocal) })
	})
	if l == nil || !l.Only || d.users == nil || !doubted {
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

// inheritAPI takes over the service manager's sockets that have the port of one of the file
// API's addresses. A socket with the whole address of one of NFS' stays NFS'.
func (d *daemon) inheritAPI() {
	d.listeners = slices.DeleteFunc(d.listeners, func(x listener) bool {
		if x.l == nil || slices.Contains(d.c.Listen, x.addr().String()) || !slices.ContainsFunc(d.c.API.Listen, func(a string) bool { return samePort(a, x.addr()) }) {
			return false
		}
		d.api.listeners = append(d.api.listeners, x.l)
		return true
	})
}

func (d *daemon) bindAPI(ctx context.Context) error {
	x, inherited := &d.api, len(d.api.listeners)
	for _, address := range d.c.API.Listen {
		if slices.ContainsFunc(x.listeners[:inherited], func(l net.Listener) bool { return samePort(address, l.Addr()) }) {
			continue
		}
		l, err := listenTCP(ctx, "api", address)
		if err != nil {
			return fmt.Errorf("api: %w", err)
		}
		x.listeners = append(x.listeners, l)
	}
	return nil
}

func samePort(address string, of net.Addr) bool {
	_, one, err := net.SplitHostPort(address)
	_, two, e := net.SplitHostPort(of.String())
	return err == nil && e == nil && one == two
}

// serveAPI begins to serve the file API. Its server ends in d.served, as that of NFS does.
func (d *daemon) serveAPI() {
	for _, l := range d.api.listeners {
		d.serving++
		go func() { d.served <- d.api.srv.Serve(l) }()
	}
}

// warnAPI says what an operator of the file API may not expect.
func (d *daemon) warnAPI() {
	a := &d.c.API
	if !a.On() {
		return
	}
	switch open := slices.ContainsFunc(d.api.listeners, func(l net.Listener) bool { return config.Elsewhere(l.Addr().String()) }); {
	case !open || d.api.tls != nil:
	case a.Cleartext:
		d.log.Warn("api: tokens cross the network in clear: whoever listens has them; this is for a proxy with TLS in front")
	default:
		d.log.Warn("api: there is no TLS, so tokens from other hosts are refused; name a certificate with --api-tls-cert")
	}
	if asRoot(a.Loopback, os.Geteuid()) {
		d.log.Warn("api: api.loopback is root, or of its group: every user of this host is, in the exports")
	}
	for i := range d.c.Exports {
		if e := &d.c.Exports[i]; slices.ContainsFunc(e.Rules(), func(c config.Client) bool { return config.IsSet(c.Secure) }) {
			d.log.Warn("api: an export that is secure refuses callers of the file API, whose ports are 1024 or above", slog.String("export", e.Path))
		}
	}
}

// asRoot reports whether l, as whom programs of this host call a server that runs as the user
// euid, is root to the exports. Another server cannot be root to anything.
func asRoot(l *config.User, euid int) bool {
	return l != nil && !l.Only && euid == 0 && (l.UID == 0 || l.GID == 0 || slices.Contains(l.Groups, 0))
}

// limitsOf are the limits of the file API. An upload keeps a descriptor of its directory in use,
// so calls are no more than half of those: the others are for NFS. files is how many files the
// process may open.
func limitsOf(c *config.Config, files uint64) fileapi.Limits {
	a := &c.API
	calls := min(a.MaxCalls, openFiles(c, files)/2)
	return fileapi.Limits{
		Calls: calls, CallsPerClient: min(a.MaxCallsPerCaller, calls), Memory: int64(a.MaxMemory), MemoryPerClient: int64(a.MaxMemoryPerCaller),
		Conns: a.MaxConnections, FileSize: uint64(a.MaxFileSize), Idle: time.Duration(a.IdleTimeout), Total: time.Duration(a.CallTimeout),
		Searches: a.MaxSearches, SearchesPerClient: a.MaxSearchesPerCaller, SearchBytes: uint64(a.MaxSearchBytes), SearchEntries: uint64(a.MaxSearchEntries),
	}
}

// callerOf is the user as a file system knows one; nil is none.
func callerOf(u *config.User) *vfs.Caller {
	if u == nil {
		return nil
	}
	return &vfs.Caller{UID: u.UID, GID: u.GID, Groups: u.Groups}
}
