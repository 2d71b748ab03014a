package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/nfsbox/nfsbox/internal/server/crowd"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
)

// web are the HTTP servers for operators: metrics at one address, the live view at
// another, profiles at a third. The first two say whether clients are served.
type web struct {
	serving  atomic.Bool // clients have been let in
	draining atomic.Bool
	servers  []*http.Server
	stops    []context.CancelFunc // what else runs until the end
	ended    sync.WaitGroup
}

// openWeb opens what the configuration asks for.
func (d *daemon) openWeb(ctx context.Context) error {
	for _, open := range []func(context.Context) error{d.openMetrics, d.openView, d.openPprof} {
		if err := open(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *daemon) openMetrics(ctx context.Context) error {
	if d.c.Metrics == "" {
		return nil
	}
	registry, err := d.registry()
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
	mux.HandleFunc("GET /healthz", d.web.serveHealth)
	_, err = d.openHTTP(ctx, "metrics", d.c.Metrics, mux)
	return err
}

func (d *daemon) openPprof(ctx context.Context) error {
	if d.c.Pprof == "" {
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	_, err := d.openHTTP(ctx, "pprof", d.c.Pprof, mux)
	return err
}

// errStarting and errDraining are why a server that begins, or ends, is not well.
var (
	errStarting = errors.New("starting")
	errDraining = errors.New("draining")
)

// health says why clients are not served, or nil.
func (w *web) health() error {
	switch {
	case w.draining.Load():
		return errDraining
	case !w.serving.Load():
		return errStarting
	}
	return nil
}

// serveHealth answers those who ask whether clients are served.
func (w *web) serveHealth(out http.ResponseWriter, _ *http.Request) {
	if err := w.health(); err != nil {
		http.Error(out, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = out.Write([]byte("ok\n")) // the client may have gone
}

// client names whose a connection is: a user of this host, or an address.
func (d *daemon) client(nc net.Conn) string {
	return oncrpc.ShareOf(nfsserver.PeerOf(d.users, nc, nc.RemoteAddr(), nc.LocalAddr()))
}

// openHTTP serves at one address, and says which it has become.
func (d *daemon) openHTTP(ctx context.Context, what, address string, h http.Handler) (*net.TCPAddr, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, family("tcp", address), address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, listenError("tcp", what, address, err))
	}
	at, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%s: %v is no address of TCP", what, l.Addr()), l.Close())
	}
	if at.IP.IsLoopback() {
		h = forThisHost(h)
	}
	conns := crowd.New(maxHTTP, d.client)
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: httpTime, ReadTimeout: httpTime, MaxHeaderBytes: maxHead,
		ConnState: func(nc net.Conn, s http.ConnState) {
			if out := conns.State(nc, s); out != nil {
				_ = out.Close() // which it is, whatever that says
			}
		},
		ErrorLog: slog.NewLogLogger(d.log.Handler(), slog.LevelWarn),
	}
	d.web.servers = append(d.web.servers, s)
	d.web.ended.Go(func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			d.log.Error(what+" has ended", slog.Any("error", err))
		}
	})
	d.log.Info(what, slog.String("url", "http://"+at.String()))
	return at, nil
}

// forThisHost answers requests to an address of loopback alone, as they are asked by
// programs of this host. A web page that a browser here shows, and whose name was
// pointed at that address (DNS rebinding), asks by this name, and is refused: it
// could read what it is told.
func forThisHost(h http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]") // there is no port
		}
		if _, err := netip.ParseAddr(host); err != nil && !strings.EqualFold(host, "localhost") {
			http.Error(out, "ask for this by an address or as localhost: it is for this host", http.StatusForbidden)
			return
		}
		h.ServeHTTP(out, r)
	})
}

// close ends the servers. What takes longer than httpEnd, such as a profile, is
// cut off.
func (w *web) close() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), httpEnd)
	defer cancel()
	for _, stop := range w.stops {
		stop()
	}
	for _, s := range w.servers {
		if s.Shutdown(ctx) != nil {
			err = errors.Join(err, s.Close())
		}
	}
	w.ended.Wait()
	return err
}
