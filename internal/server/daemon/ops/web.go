package ops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/nfsbox/nfsbox/internal/server/crowd"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/server/view"
	"github.com/nfsbox/nfsbox/nfsserver"
)

// WebOptions are what [Web.Open] takes. All are required.
type WebOptions struct {
	Config  *config.Config // of the start: a reload changes nothing here
	Version string         // of the program
	URL     string         // of the server, as its clients know it
	Now     func() time.Time
	Log     *slog.Logger
	Logs    *Logs
	Source  func() *Scrape                                                       // called at any time, from any goroutine
	Listen  func(ctx context.Context, key, address string) (net.Listener, error) // at an address of Config's key
	Client  func(net.Conn) string                                                // names the client of a connection
	Clients func() []nfsserver.ClientInfo                                        // of the NFS server; like Source
}

// Web is the HTTP servers for operators: metrics at one address, the live view at
// another, profiles at a third. The first two say whether clients are served. The zero
// Web has no server.
type Web struct {
	o        WebOptions
	started  time.Time
	serving  atomic.Bool // clients have been let in
	draining atomic.Bool
	servers  []*http.Server
	stops    []context.CancelFunc // what else runs until the end
	ended    sync.WaitGroup
}

// Open opens what the configuration asks for. After an error Close is still to be called.
func (w *Web) Open(ctx context.Context, o WebOptions) error {
	w.o, w.started = o, o.Now()
	for _, open := range []func(context.Context) error{w.openMetrics, w.openView, w.openPprof} {
		if err := open(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *Web) openMetrics(ctx context.Context) error {
	if w.o.Config.Metrics == "" {
		return nil
	}
	registry, err := newRegistry(w.o.Config, w.scrape)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
	mux.HandleFunc("GET /healthz", w.serveHealth)
	_, err = w.openHTTP(ctx, "metrics", w.o.Config.Metrics, whole(mux))
	return err
}

// openView serves the live view, if it shall.
func (w *Web) openView(ctx context.Context) error {
	if w.o.Config.HTTP == "" {
		return nil
	}
	v := w.newView()
	at, err := w.openHTTP(ctx, "http", w.o.Config.HTTP, v)
	if err != nil {
		return err
	}
	if !at.IP.IsLoopback() {
		w.o.Log.Warn("everybody who can reach the address of http sees what this server does, and for whom", slog.String("address", at.String()))
	}
	w.o.Logs.slow.view, w.o.Logs.view = v, v
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.stops = append(w.stops, stop)
	w.ended.Go(func() { v.Run(running) })
	return nil
}

// Frame is what the live view shows now, without the points of its charts. Of a server that
// has no view it is what has been counted since the start, without rates.
func (w *Web) Frame() *view.Frame {
	v := w.o.Logs.view
	if v == nil {
		v = w.newView()
	}
	f := v.Frame(math.MaxUint64)
	f.Points = []view.Point{}
	return f
}

// newView is the live view of this server. What bounds it has are those of the
// start: a reload does not change them.
func (w *Web) newView() *view.View {
	return view.New(view.Options{
		Now: w.o.Now,
		Source: func() view.Snapshot {
			s := w.scrape().view(w.o.Config, w.o.URL, w.o.Version, w.started)
			s.Clients = viewClients(w.o.Clients())
			return s
		},
		NameFile: w.o.Logs.nameFile,
		Health:   w.health,
	})
}

func (w *Web) openPprof(ctx context.Context) error {
	if w.o.Config.Pprof == "" {
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	_, err := w.openHTTP(ctx, "pprof", w.o.Config.Pprof, mux)
	return err
}

// errStarting and errDraining are why a server that begins, or ends, is not well.
var (
	errStarting = errors.New("starting")
	errDraining = errors.New("draining")
)

// health says why clients are not served, or nil.
func (w *Web) health() error {
	switch {
	case w.draining.Load():
		return errDraining
	case !w.serving.Load():
		return errStarting
	}
	return nil
}

func (w *Web) serveHealth(out http.ResponseWriter, _ *http.Request) {
	if err := w.health(); err != nil {
		http.Error(out, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = out.Write([]byte("ok\n")) // the client may have gone
}

// openHTTP serves at one address, and says which it has become.
func (w *Web) openHTTP(ctx context.Context, what, address string, h http.Handler) (*net.TCPAddr, error) {
	l, err := w.o.Listen(ctx, what, address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	at, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%s: %v is no address of TCP", what, l.Addr()), l.Close())
	}
	if at.IP.IsLoopback() {
		h = forThisHost(h)
	}
	conns := crowd.New(maxHTTP, w.o.Client)
	s := &http.Server{
		Handler: lately(conns, h), ReadHeaderTimeout: httpTime, ReadTimeout: httpTime, MaxHeaderBytes: maxHead,
		ConnContext: crowd.Context,
		ConnState: func(nc net.Conn, s http.ConnState) {
			if out := conns.State(nc, s); out != nil {
				_ = out.Close() // which it is, whatever that says
			}
		},
		ErrorLog: slog.NewLogLogger(w.o.Log.Handler(), slog.LevelWarn),
	}
	w.servers = append(w.servers, s)
	w.ended.Go(func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			w.o.Log.Error(what+" has ended", slog.Any("error", err))
		}
	})
	w.o.Log.Info(what, slog.String("url", "http://"+at.String()))
	return at, nil
}

// lately tells conns of each request, but holds no place for it: an answer takes
// milliseconds, unless its client does not read it. Then that many newer connections
// displace it, and no fewer.
func lately(conns *crowd.Crowd, h http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		conns.Serves(r.Context())()
		h.ServeHTTP(out, r)
	})
}

// whole sends what h answers when h has ended, within httpTime. So a client that does not
// read its answer does not hold one of the maxScrapes.
func whole(h http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: out, status: http.StatusOK}
		h.ServeHTTP(a, r)
		// A writer without deadlines is a test's.
		_ = http.NewResponseController(out).SetWriteDeadline(time.Now().Add(httpTime))
		out.WriteHeader(a.status)
		_, _ = out.Write(a.body) // the client may have gone
	})
}

// answer keeps a status, and a body.
type answer struct {
	http.ResponseWriter // its header alone
	status              int
	body                []byte
}

func (a *answer) WriteHeader(status int) { a.status = status }

func (a *answer) Write(p []byte) (int, error) {
	a.body = append(a.body, p...)
	return len(p), nil
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

// Serving says that clients are served from now on.
func (w *Web) Serving() { w.serving.Store(true) }

// Draining says that the end has begun.
func (w *Web) Draining() { w.draining.Store(true) }

// scrape is what all has counted by now.
func (w *Web) scrape() *Scrape { return w.o.Source().complete(w.o.Logs) }

// Close ends the servers. What takes longer than httpEnd, such as a profile, is cut off.
func (w *Web) Close() (err error) {
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
