package view

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/fault"
)

// Options say what a View shows. Source is required.
type Options struct {
	// Source is asked for the counters once in every interval, by one goroutine
	// at a time.
	Source func() Snapshot
	// Health returns why the server is not healthy, or nil; a nil Health: it always is.
	// Many goroutines call it at once.
	Health func() error
	// NameFile returns the path of a Call's File, or what is to be shown of it while that is
	// not known: ok is false then. nil: that is File. It is called by the goroutine that
	// calls Source.
	NameFile func(string) (name string, ok bool)
	Every    time.Duration    // from one Frame to the next; DefaultEvery if 0
	Now      func() time.Time // time.Now if nil
}

// View is the live view of a server: an http.Handler, to be mounted at the root
// of an address, or below a path if that is stripped. All methods may be called
// concurrently.
type View struct {
	o    Options
	mux  http.ServeMux
	slow slowCalls
	busy busy

	names map[string]string // of the files in the last Frame; whoAndWhat's own

	mu     sync.Mutex
	last   sample  // guarded by mu, like all below
	frame  *Frame  // not changed any more; its points are those below
	points []Point // the oldest first, maxPoints at most
	seq    uint64  // of the last point
}

// New makes a View and takes its first snapshot. Rates and charts need Run.
func New(o Options) *View {
	o.Every = cmp.Or(o.Every, DefaultEvery)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NameFile == nil {
		o.NameFile = func(file string) (string, bool) { return file, true }
	}
	v := &View{o: o}
	v.busy.init()
	v.mux.HandleFunc("GET /{$}", asset("page/index.html", "text/html; charset=utf-8"))
	v.mux.HandleFunc("GET /page.css", asset("page/page.css", "text/css; charset=utf-8"))
	v.mux.HandleFunc("GET /page.js", asset("page/page.js", "text/javascript; charset=utf-8"))
	v.mux.HandleFunc("GET /icon.svg", asset("page/icon.svg", "image/svg+xml"))
	v.mux.HandleFunc("GET /view.json", v.serveFrame)
	v.mux.HandleFunc("GET /healthz", v.serveHealth)
	v.last = v.take()
	v.publish(between(&v.last, &v.last))
	return v
}

// Run takes a snapshot in every interval until ctx ends.
func (v *View) Run(ctx context.Context) {
	tick := time.NewTicker(v.o.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			v.step()
		}
	}
}

func (v *View) take() sample {
	s := sample{v.o.Source(), v.o.Now()}
	s.Procs = together(s.Procs)
	return s
}

func (v *View) step() {
	now := v.take()
	v.mu.Lock()
	was := v.last
	v.last = now
	v.mu.Unlock()
	v.publish(between(&was, &now))
}

// publish makes a Frame of an interval, and a point if it has rates.
func (v *View) publish(iv interval) {
	f := iv.frame()
	f.Every = v.o.Every.Seconds()
	f.Slow = v.slow.list(iv.now.at)
	v.whoAndWhat(f, &iv)
	v.mu.Lock()
	defer v.mu.Unlock()
	if iv.seconds > 0 {
		p := f.point()
		v.seq++
		p.Seq = v.seq
		if len(v.points) == maxPoints {
			v.points = slices.Delete(v.points, 0, 1)
		}
		v.points = append(v.points, p)
	}
	v.frame = f
}

// Share says of how many calls Count shall be told: of each for which a random number, of
// 64 bits, is at most this. It costs an atomic load.
func (v *View) Share() uint64 { return v.busy.below.Load() }

// Count is told of a call that was picked by Share: who made it, and what it was about.
func (v *View) Count(c Call) { v.busy.add(&c) }

// Slow reports a call that took long; the slowest are shown. It may be called for every
// call: most cost an atomic load, and none waits for a reader.
func (v *View) Slow(c SlowCall) { v.slow.add(c) }

// AmongSlowest reports whether Slow might keep a call that took so long. It costs an
// atomic load, and saves calls of Slow.
func (v *View) AmongSlowest(took time.Duration) bool { return v.slow.counts(took) }

// Frame returns the last Frame, with the points after the given one. If after is larger
// than the last point, the reader has it from before a restart, and gets all points.
func (v *View) Frame(after uint64) *Frame {
	v.mu.Lock()
	f := *v.frame
	first := v.seq - uint64(len(v.points)) // the point before the first
	skip := uint64(0)
	if after > first && after <= v.seq {
		skip = after - first
	}
	f.Points = append([]Point{}, v.points[skip:]...)
	v.mu.Unlock()
	if err := v.health(); err != nil {
		f.Health = short(err.Error())
	}
	f.Healthy = f.Health == ""
	return &f
}

func (v *View) health() error {
	if v.o.Health == nil {
		return nil
	}
	return v.o.Health()
}

//go:embed page
var pages embed.FS

// policy allows the page what it is made of, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler. How many are served at once is bounded by
// the owner of the listener.
func (v *View) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	// If the writer has no deadlines, as a recorder in a test, there is none.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
	v.mux.ServeHTTP(w, r)
}

func asset(name, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		http.ServeFileFS(w, r, pages, name)
	}
}

func (v *View) serveFrame(w http.ResponseWriter, r *http.Request) {
	after := uint64(0)
	if s := r.URL.Query().Get("after"); s != "" {
		var err error
		if after, err = strconv.ParseUint(s, 10, 64); err != nil {
			http.Error(w, "after: the number of a point, as in ?after=17", http.StatusBadRequest)
			return
		}
	}
	text, err := json.Marshal(v.Frame(after))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(fault.CleanJSON(text), '\n')) // the reader may have gone
}

func (v *View) serveHealth(w http.ResponseWriter, _ *http.Request) {
	if err := v.health(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n")) // the reader may have gone
}
