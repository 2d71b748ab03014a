package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// web are the HTTP servers for operators: metrics and health at one address,
// profiles at another.
type web struct {
	draining atomic.Bool
	servers  []*http.Server
	ended    sync.WaitGroup
}

// openWeb opens what the configuration asks for.
func (d *daemon) openWeb(ctx context.Context) error {
	if d.c.Metrics != "" {
		mux := http.NewServeMux()
		registry, err := d.registry()
		if err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
		mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
		mux.HandleFunc("GET /healthz", d.web.health)
		if err := d.openHTTP(ctx, "metrics", d.c.Metrics, mux); err != nil {
			return err
		}
	}
	if d.c.Pprof == "" {
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return d.openHTTP(ctx, "pprof", d.c.Pprof, mux)
}

// health answers those who ask whether clients are served.
func (w *web) health(out http.ResponseWriter, _ *http.Request) {
	if w.draining.Load() {
		http.Error(out, "draining", http.StatusServiceUnavailable)
		return
	}
	_, _ = out.Write([]byte("ok\n")) // who asks may have gone
}

// openHTTP serves at one address.
func (d *daemon) openHTTP(ctx context.Context, what, address string, h http.Handler) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("%s: %w", what, listenError(what, address, err))
	}
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: httpTime, ReadTimeout: httpTime, MaxHeaderBytes: maxHead,
		ConnState: atMost(maxHTTP),
		ErrorLog:  slog.NewLogLogger(d.log.Handler(), slog.LevelWarn),
	}
	d.web.servers = append(d.web.servers, s)
	d.web.ended.Go(func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			d.log.Error(what+" has ended", slog.Any("error", err))
		}
	})
	d.log.Info(what, slog.String("url", "http://"+l.Addr().String()))
	return nil
}

// atMost closes connections beyond n.
func atMost(n int64) func(net.Conn, http.ConnState) {
	var open atomic.Int64
	return func(c net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			if open.Add(1) > n {
				_ = c.Close() // the server finds it closed, and says StateClosed
			}
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
}

// close ends the servers. What takes longer than httpEnd, such as a profile, is
// cut off.
func (w *web) close() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), httpEnd)
	defer cancel()
	for _, s := range w.servers {
		if s.Shutdown(ctx) != nil {
			err = errors.Join(err, s.Close())
		}
	}
	w.ended.Wait()
	return err
}
