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
		return fmt.Errorf("%s: %w", what, listenError(address, err))
	}
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: httpTime, ReadTimeout: httpTime, MaxHeaderBytes: maxHead,
		ErrorLog: slog.NewLogLogger(d.log.Handler(), slog.LevelWarn),
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

// close ends the servers, within httpTime.
func (w *web) close() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), httpTime)
	defer cancel()
	for _, s := range w.servers {
		if e := s.Shutdown(ctx); e != nil {
			err = errors.Join(err, e, s.Close())
		}
	}
	w.ended.Wait()
	return err
}
