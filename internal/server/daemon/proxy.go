package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/server/upstream"
	"github.com/nfsbox/nfsbox/vfs"
)

// handlesVerbatim is the value of handles by which those of another server are handed out as they are.
const handlesVerbatim = "verbatim"

// nfsPort is where NFS is if a URL says nothing.
const nfsPort = 2049

// openUpstream makes the file system of an export that stands for another server's. It waits for that for upstreamTime. A
// server that was reached once may be away, as after a power cut; one that never was may be a mistake, and is an error.
func (d *daemon) openUpstream(c *config.Config, e *config.Export, s *site) (*directory, error) {
	u, err := upstreamURL(s.from)
	if err != nil {
		return nil, fmt.Errorf("from: %w", err)
	}
	ctx, cancel := context.WithTimeout(d.sites.ended, upstreamTime)
	defer cancel()
	if at := ownAddress(ctx, u, d.addresses(c)); at != "" {
		return nil, fmt.Errorf("from: %s is this server itself, which listens at %s: name the server that has the files", s.from, at)
	}
	x := &directory{tree: treeOfURL(u)}
	up := d.newUpstream(s, u, true, x.far.Store)
	x.fs = up
	err = up.Connect(ctx)
	if err == nil {
		return x, d.markReached(s)
	}
	if !mayComeYet(err) || !d.reached(s) {
		return nil, errors.Join(firstTime(s, err), x.close())
	}
	d.log.Warn("the upstream does not answer yet: clients are told to come again until it does",
		slog.String("export", e.Path), slog.String("from", s.from), slog.Any("error", err))
	up.Persist()
	return x, nil
}

// mayComeYet reports whether it can help to try again.
func mayComeYet(err error) bool {
	refused, _ := errors.AsType[*upstream.RefusedError](err)
	cache, _ := errors.AsType[*nfsbox.CacheError](err)
	return refused == nil && cache == nil
}

// firstTime says why a server that was never reached is not waited for.
func firstTime(s *site, err error) error {
	if !mayComeYet(err) {
		return fmt.Errorf("from: %w", err)
	}
	return fmt.Errorf("from: %s cannot be reached, and was not before, so that it may be a mistake: start again when it answers: %w", s.from, err)
}

// newUpstream makes the file system, which is not connected. cached says whether it may use its cache, and met is told of its client.
func (d *daemon) newUpstream(s *site, u *nfsbox.URL, cached bool, met func(*nfsbox.Client)) *upstream.FS {
	cached = cached && (s.cache != "" || s.cacheConf != "")
	most := export.MaxInner
	if s.handles == handlesVerbatim {
		most = vfs.MaxHandleV3
	}
	host := fnv.New64a()
	_, _ = host.Write([]byte(serverOf(u))) // a hash.Hash never fails to write
	return upstream.New(upstream.Options{
		Name: s.from, Probe: d.probe, FSID: host.Sum64(), Keep: cached, Log: d.log, MaxHandle: most,
		Longer: "--handles verbatim (handles = \"verbatim\") hands them out as they are, for an export that is the only one",
		Dial: func(ctx context.Context) (vfs.FS, error) {
			far, err := d.dialUpstream(ctx, s, cached)
			if err != nil {
				return nil, err
			}
			met(far.client)
			return far, nil
		},
	})
}

// dialled is a client's file system, which the client ends with.
type dialled struct {
	vfs.FS
	client *nfsbox.Client
}

func (x *dialled) Unwrap() any  { return x.FS }
func (x *dialled) Close() error { return x.client.Close() }

// dialUpstream connects to another server.
func (d *daemon) dialUpstream(ctx context.Context, s *site, cached bool) (*dialled, error) {
	nobody := vfs.Caller{UID: export.Nobody, GID: export.Nobody}
	options := []nfsbox.Option{
		nfsbox.WithCaller(nobody), nfsbox.WithRand(d.w.Rand), nfsbox.WithLocalIO(nfsbox.LocalIOOff),
		nfsbox.WithProxy(nfsbox.Proxy{Offline: s.offline, Silent: func(silent bool) { d.tellSilent(s, silent) }}),
	}
	if cached {
		dir := s.cache
		if dir != "" {
			var err error
			if dir, err = filepath.Abs(dir); err != nil {
				return nil, err
			}
		}
		options = append(options, nfsbox.WithCache(dir), nfsbox.WithCacheConfig(s.cacheConf), nfsbox.WithCacheNotes(func(note string) {
			d.log.Warn("the cache: "+note, slog.String("from", s.from))
		}))
	}
	c, err := nfsbox.Dial(ctx, s.from, options...)
	if err != nil {
		return nil, err
	}
	if c.Target() != "" {
		_, missing := c.Found()
		if missing == nil {
			missing = &upstream.RefusedError{Name: s.from, Why: "it is no directory"}
		}
		return nil, errors.Join(missing, c.Close())
	}
	return &dialled{c.Direct(), c}, nil
}

func (d *daemon) tellSilent(s *site, silent bool) {
	if silent {
		d.log.Warn("the upstream does not answer: clients are told to come again", slog.String("from", s.from))
		return
	}
	d.log.Info("the upstream answers again", slog.String("from", s.from))
}

// upstreamURL parses a URL, and refuses arguments that would be for one user.
func upstreamURL(raw string) (*nfsbox.URL, error) {
	u, err := nfsbox.ParseURL(raw)
	switch {
	case err != nil:
		return nil, err
	case u.UID != nil || u.GID != nil:
		return nil, fmt.Errorf("%s: callers are there who they are here: squash, anonuid and anongid say otherwise, and not uid and gid", raw)
	case u.Cached:
		return nil, fmt.Errorf("%s: the cache is set by cache and cache-config, and not in the URL", raw)
	}
	return u, nil
}

// serverOf is the server's name and port.
func serverOf(u *nfsbox.URL) string {
	return net.JoinHostPort(strings.ToLower(u.Host), strconv.Itoa(int(cmp.Or(u.NFSPort, u.Port))))
}

// treeOfURL tells the export from others: the same whether or not the server is there, and whatever the arguments are.
func treeOfURL(u *nfsbox.URL) []byte {
	return []byte("nfs\x00" + serverOf(u) + "\x00" + u.Export + "\x00" + u.Path)
}

// addresses are those at which this server listens, or will.
func (d *daemon) addresses(c *config.Config) (all []string) {
	for i := range d.listeners {
		all = append(all, d.listeners[i].addr().String())
	}
	if len(all) == 0 {
		all = c.Listen
	}
	return all
}

// ownAddress is the address, of those at which this server listens, that the URL leads to; "" is none. A name that is not found leads
// nowhere: what is met in another way later (upstream.Probe) is a loop all the same.
func ownAddress(ctx context.Context, u *nfsbox.URL, listen []string) string {
	hosts, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Host)
	if err != nil {
		return ""
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	port := cmp.Or(u.NFSPort, u.Port, nfsPort)
	for _, at := range listen {
		name, p, err := net.SplitHostPort(at)
		if err != nil || p != strconv.Itoa(int(port)) {
			continue
		}
		listens, _ := netip.ParseAddr(name) // invalid for a name, and for all addresses
		for _, h := range hosts {
			h = h.Unmap()
			everywhere := !listens.IsValid() || listens.IsUnspecified()
			if h == listens.Unmap() || everywhere && (h.IsLoopback() || slices.ContainsFunc(own, func(a net.Addr) bool { return addrIs(a, h) })) {
				return at
			}
		}
	}
	return ""
}

func addrIs(a net.Addr, h netip.Addr) bool {
	n, ok := a.(*net.IPNet)
	if !ok {
		return false
	}
	ip, ok := netip.AddrFromSlice(n.IP)
	return ok && ip.Unmap() == h
}

// reachedFile says by its being there that a server was reached once.
func (d *daemon) reachedFile(s *site) string { return filepath.Join(d.own, "reached-"+folder(s.from)) }

func (d *daemon) reached(s *site) bool {
	info, err := os.Lstat(d.reachedFile(s))
	return err == nil && info.Mode().IsRegular()
}

func (d *daemon) markReached(s *site) error {
	f, err := os.OpenFile(d.reachedFile(s), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err == nil:
		err = f.Close()
	}
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	return nil
}

// checkUpstreams looks whether other servers answer, as a start would. It changes nothing, and does not look at what is
// cached.
func (d *daemon) checkUpstreams() error {
	var all []error
	for i := range d.c.Exports {
		e := &d.c.Exports[i]
		if e.From == "" {
			continue
		}
		if d.probe == nil {
			d.probe = upstream.NewProbe(d.w.Rand)
		}
		all = append(all, d.w.from(i, d.checkUpstream(e)))
	}
	return errors.Join(all...)
}

func (d *daemon) checkUpstream(e *config.Export) error {
	s, err := siteOf(e)
	if err != nil {
		return err
	}
	u, err := upstreamURL(s.from)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), upstreamTime)
	defer cancel()
	if at := ownAddress(ctx, u, d.addresses(d.c)); at != "" {
		return fmt.Errorf("%s is this server itself, which listens at %s: name the server that has the files", s.from, at)
	}
	s.offline = 0
	up := d.newUpstream(&s, u, false, func(*nfsbox.Client) {})
	err = up.Connect(ctx)
	if err != nil && mayComeYet(err) && d.own != "" && d.reached(&s) {
		d.log.Warn("the upstream does not answer; a start goes on without it, since it has been reached before",
			slog.String("export", e.Path), slog.String("from", s.from), slog.Any("error", err))
		err = nil
	}
	return errors.Join(err, up.Close())
}
