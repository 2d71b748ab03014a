package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nfsbox/nfsbox/internal/base/metric"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden holds the JSON to its form: readers of other versions rely on it.
func TestGolden(t *testing.T) {
	f := newFake()
	v := New(f.options())
	f.work()
	f.slow(v)
	v.step()
	f.work()
	f.count(v)
	v.step()
	w := get(t, v, "/view.json")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Fatal(w.Code, w.Header())
	}
	var got bytes.Buffer
	if err := json.Indent(&got, w.Body.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	const name = "testdata/frame.json"
	if *update {
		if err := os.WriteFile(name, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("view.json is\n%s\nbut %s has\n%s", &got, name, want)
	}
}

// TestFirst sees that the first Frame has figures, tables that are there, and no
// rates.
func TestFirst(t *testing.T) {
	f := newFake()
	f.call(0, 10, time.Millisecond)
	v := New(f.options())
	got := v.Frame(0)
	if got.Interval != 0 || got.Total.Rate != 0 || got.Total.P99 != 0 || got.Total.Calls != 10 || len(got.Points) != 0 || len(got.Procs) != 1 {
		t.Errorf("%+v", got)
	}
	empty := New(Options{Source: func() Snapshot { return Snapshot{Started: epoch} }})
	body := get(t, empty, "/view.json").Body.String()
	if n := strings.Count(body, "null"); n != 1 || !strings.Contains(body, `"localio":null`) {
		t.Errorf("%d nulls where tables should be: %s", n, body)
	}
}

// TestBegunAgain moves counters backwards: no rate becomes enormous or negative.
func TestBegunAgain(t *testing.T) {
	f := newFake()
	f.call(0, 1000, time.Second)
	v := New(f.options())
	f.s.Procs[0].Calls, f.s.Procs[0].BytesIn = 0, 0
	f.latency[0] = new(metric.Histogram)
	f.s.Gate.Lanes[0].Entered, f.s.Conns.Accepted, f.s.Process.CPU = 0, 0, 0
	f.now = f.now.Add(2 * time.Second)
	f.call(0, 10, time.Millisecond)
	f.s.Gate.Lanes[0].Entered = 4
	v.step()
	got := v.Frame(0)
	p := got.Procs[0]
	if p.Rate != 5 || p.In != 500 || p.P50 < 0.0009 || p.P50 > 0.0011 || got.Gate.Lanes[0].Entered != 2 ||
		got.Conns.Accepted != 0 || got.Process.CPU != 0 {
		t.Errorf("%+v", got)
	}
	// Another life of the server has no rates with the one before, and a clock
	// that went backwards none at all.
	f.s.Started = f.s.Started.Add(time.Minute)
	f.work()
	v.step()
	if got := v.Frame(0); got.Interval != 0 || got.Total.Rate != 0 {
		t.Errorf("%+v", got.Total)
	}
	f.work()
	f.now = epoch
	v.step()
	if got := v.Frame(0); got.Interval != 0 || got.Total.Rate != 0 {
		t.Errorf("%+v", got.Total)
	}
}

// TestTwice gives one procedure two rows, as a server does that has it over two
// transports.
func TestTwice(t *testing.T) {
	f := newFake()
	f.s.Procs[1] = f.s.Procs[0]
	v := New(f.options())
	f.call(0, 30, time.Millisecond)
	f.call(1, 10, time.Second)
	f.now = f.now.Add(2 * time.Second)
	v.step()
	got := v.Frame(0)
	if len(got.Procs) != 1 || got.Procs[0].Rate != 20 || got.Procs[0].P50 > 0.0011 || got.Procs[0].P99 < 0.9 || got.Points[0].Rates["READ"] != 20 {
		t.Errorf("%+v", got.Procs)
	}
}

// TestPoints asks for points as readers do.
func TestPoints(t *testing.T) {
	f := newFake()
	v := New(f.options())
	for range maxPoints + 5 {
		f.work()
		v.step()
	}
	const last = maxPoints + 5
	for _, c := range []struct {
		query string
		first uint64
		n     int
	}{
		{"", 6, maxPoints},
		{"?after=0", 6, maxPoints},
		{"?after=3", 6, maxPoints}, // of those that went
		{"?after=5", 6, maxPoints},
		{"?after=6", 7, maxPoints - 1},
		{fmt.Sprintf("?after=%d", last-1), last, 1},
		{fmt.Sprintf("?after=%d", last), 0, 0},
		{fmt.Sprintf("?after=%d", last+1), 6, maxPoints}, // of another life
		{"?after=18446744073709551615", 6, maxPoints},
	} {
		var got Frame
		if err := json.Unmarshal(get(t, v, "/view.json"+c.query).Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Points) != c.n || c.n > 0 && (got.Points[0].Seq != c.first || got.Points[c.n-1].Seq != last) {
			t.Errorf("%q: %d points", c.query, len(got.Points))
		}
	}
	for _, bad := range []string{"?after=-1", "?after=x", "?after=18446744073709551616"} {
		if w := get(t, v, "/view.json"+bad); w.Code != http.StatusBadRequest {
			t.Errorf("%q: %d", bad, w.Code)
		}
	}
}

// TestRun lets the clock run.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		v := New(Options{Source: func() Snapshot { return f.source() }, Every: time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { v.Run(ctx); close(ended) }()
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		if got := v.Frame(0); len(got.Points) != 3 || got.Interval != 1 || got.Every != 1 {
			t.Errorf("%d points of %v s", len(got.Points), got.Interval)
		}
		cancel()
		<-ended
	})
}

// TestSlow keeps the slowest, for a while.
func TestSlow(t *testing.T) {
	f := newFake()
	v := New(f.options())
	for i := range 10 * slowest {
		v.Slow(SlowCall{At: f.now, Took: time.Duration(i*7919%(10*slowest)) * time.Millisecond})
	}
	rows := v.slow.list(f.now)
	if len(rows) != slowest {
		t.Fatalf("%d rows", len(rows))
	}
	for i, r := range rows {
		if want := (time.Duration(10*slowest-1-i) * time.Millisecond).Seconds(); r.Took != want {
			t.Errorf("row %d: %v, want %v", i, r.Took, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { v.Slow(SlowCall{At: f.now, Took: time.Millisecond}) }); n != 0 {
		t.Errorf("a call that is fast enough costs %v allocations", n)
	}
	if v.AmongSlowest(time.Millisecond) || !v.AmongSlowest(time.Hour) {
		t.Error("a fast call is among the slowest, or a slow one is not")
	}
	v.Slow(SlowCall{At: f.now.Add(-time.Second), Took: time.Hour}) // told late
	f.now = f.now.Add(slowWindow)
	v.step()
	v.Slow(SlowCall{At: f.now, Took: time.Microsecond}) // the only one of its window
	if rows = v.slow.list(f.now); len(rows) != slowest+1 || rows[0].Took != 3600 || rows[slowest].Took != 1e-6 {
		t.Errorf("%d rows in the next window", len(rows))
	}
	f.now = f.now.Add(slowWindow)
	if rows = v.slow.list(f.now); len(rows) != 1 {
		t.Errorf("%d rows in the one after", len(rows))
	}
	f.now = f.now.Add(2 * slowWindow)
	if rows = v.slow.list(f.now); len(rows) != 0 {
		t.Errorf("%d rows in the end", len(rows))
	}
	v.Slow(SlowCall{At: epoch.Add(-24 * time.Hour), Took: time.Second}) // the clock was set
	if rows = v.slow.list(epoch.Add(-24 * time.Hour)); len(rows) != 1 {
		t.Errorf("%d rows on the day before", len(rows))
	}
}

// TestBounds gives a View more than it shows.
func TestBounds(t *testing.T) {
	f := newFake()
	f.s.Gate.Lanes = nil
	for i := range 2 * maxLanes {
		f.s.Gate.Lanes = append(f.s.Gate.Lanes, Lane{Export: fmt.Sprint(i), Name: "read", Entered: 1, Inside: 1})
	}
	f.s.Jobs = make([]Job, maxJobs+7)
	f.s.Limits = make([]Limit, maxLimits+5)
	f.s.Caches[0].Name = strings.Repeat("ü", maxName)
	v := New(f.options())
	for i := range f.s.Gate.Lanes {
		f.s.Gate.Lanes[i].Entered, f.s.Gate.Lanes[i].Waits = 3, 2
		f.s.Gate.Lanes[i].Waited = 2 * time.Second
	}
	f.now = f.now.Add(2 * time.Second)
	v.step()
	got := v.Frame(0)
	if len(got.Gate.Lanes) != maxLanes+1 || len(got.Jobs) != maxJobs || len(got.Limits) != maxLimits || got.Left != 12 {
		t.Errorf("%d lanes, %d jobs, %d limits; %d left", len(got.Gate.Lanes), len(got.Jobs), len(got.Limits), got.Left)
	}
	if l := got.Gate.Lanes[maxLanes]; l.Export != others || l.Inside != maxLanes || l.Entered != maxLanes || l.Wait != 1 {
		t.Errorf("the other lanes: %+v", l)
	}
	if name := got.Caches[0].Name; len(name) > maxName || !utf8.ValidString(name) || !strings.HasSuffix(name, "ü…") {
		t.Errorf("a long name: %q", name)
	}
}

// TestHealth asks whether the server is well.
func TestHealth(t *testing.T) {
	o := newFake().options()
	if w := get(t, New(o), "/healthz"); w.Code != http.StatusOK || w.Body.String() != "ok\n" {
		t.Error(w.Code, w.Body)
	}
	o.Health = func() error { return errors.New("draining") }
	v := New(o)
	if w := get(t, v, "/healthz"); w.Code != http.StatusServiceUnavailable || w.Body.String() != "draining\n" {
		t.Error(w.Code, w.Body)
	}
	if f := v.Frame(0); f.Healthy || f.Health != "draining" {
		t.Errorf("%v %q", f.Healthy, f.Health)
	}
}

// TestHandler asks for everything there is, and for what is not.
func TestHandler(t *testing.T) {
	v := New(newFake().options())
	for _, c := range []struct {
		path, kind string
		code       int
	}{
		{"/", "text/html; charset=utf-8", 200},
		{"/page.css", "text/css; charset=utf-8", 200},
		{"/page.js", "text/javascript; charset=utf-8", 200},
		{"/icon.svg", "image/svg+xml", 200},
		{"/view.json", "application/json", 200},
		{"/healthz", "text/plain; charset=utf-8", 200},
		{"/index.html", "text/plain; charset=utf-8", 404},
		{"/page/page.js", "text/plain; charset=utf-8", 404},
		{"/debug/pprof/", "text/plain; charset=utf-8", 404},
	} {
		w := get(t, v, c.path)
		if w.Code != c.code || w.Header().Get("Content-Type") != c.kind {
			t.Errorf("%s: %d, %s", c.path, w.Code, w.Header().Get("Content-Type"))
		}
		for _, h := range []string{"Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options", "Cache-Control"} {
			if w.Header().Get(h) == "" {
				t.Errorf("%s has no %s", c.path, h)
			}
		}
	}
	w := httptest.NewRecorder()
	v.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/view.json", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

// TestAlone sees that the page needs nothing of anybody else, and has no script
// or style within it that its policy would have to allow.
func TestAlone(t *testing.T) {
	foreign := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9]+\.|@import|url\(|eval\(|innerHTML|outerHTML|insertAdjacentHTML|document\.write`)
	for _, name := range []string{"/", "/page.css", "/page.js", "/icon.svg"} {
		text := strings.ReplaceAll(get(t, New(newFake().options()), name).Body.String(), "http://www.w3.org/2000/svg", "")
		if found := foreign.FindString(text); found != "" {
			t.Errorf("%s has %q", name, found)
		}
	}
	page := get(t, New(newFake().options()), "/").Body.String()
	if found := regexp.MustCompile(`(?i)<style|\sstyle=|\son\w+=|<script[^>]*>[^<]`).FindString(page); found != "" {
		t.Errorf("the page has %q", found)
	}
}

// TestHostileJSON puts names that want to be markup, and bytes that are no text,
// wherever a name can stand.
func TestHostileJSON(t *testing.T) {
	f := newFake()
	const hostile = "</script><img src=x onerror=alert(1)>\x00\xff\u202e\u2028"
	f.hostile(hostile)
	v := New(f.options())
	v.Slow(SlowCall{At: f.now, Proc: hostile, Client: hostile, Detail: hostile, Took: time.Second})
	f.work()
	v.step()
	body := get(t, v, "/view.json").Body.Bytes()
	if bytes.ContainsAny(body, "<>\x00\xff") || !utf8.Valid(body) {
		t.Errorf("not escaped: %q", body)
	}
	var got Frame
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(hostile, "\xff", "\ufffd"); got.Slow[0].Client != want || got.Jobs[0].Name != want {
		t.Errorf("%q", got.Slow[0].Client)
	}
}

// hostile gives everything that has a name this one.
func (f *fake) hostile(name string) {
	s := &f.s
	s.URL, s.Version, s.Gate.Kind, s.Gate.Reason = name, name, name, name
	s.Procs[0].Name, s.Procs[0].Program = name, name
	s.Procs[1].Name = "__proto__"
	s.Gate.Lanes[0].Export, s.Gate.Lanes[0].Name = name, name
	s.Limits[0].Name, s.Caches[0].Name = name, name
	s.Jobs[0].Name, s.Jobs[0].State = name, name
}

// BenchmarkStep is what a Frame costs the server.
func BenchmarkStep(b *testing.B) {
	f := newFake()
	v := New(f.options())
	for b.Loop() {
		f.now = f.now.Add(2 * time.Second)
		v.step()
	}
}

// BenchmarkServe is what a reader costs it who has seen the points before.
func BenchmarkServe(b *testing.B) {
	f := newFake()
	v := New(f.options())
	f.work()
	v.step()
	r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/view.json?after=1", nil)
	for b.Loop() {
		v.ServeHTTP(httptest.NewRecorder(), r)
	}
}

// TestPrintable: what is shown of strangers cannot steer a terminal.
func TestPrintable(t *testing.T) {
	const odd = "/data/\u009b31m\u0085\u202eü<"
	f := newFake()
	f.s.Gate.Lanes[0].Export = odd
	v := New(f.options())
	f.work()
	v.step()
	body := get(t, v, "/view.json").Body.String()
	for _, c := range strings.TrimSuffix(body, "\n") {
		if !unicode.IsPrint(c) {
			t.Fatalf("%q holds %U", body, c)
		}
	}
	var frame Frame
	if err := json.Unmarshal([]byte(body), &frame); err != nil || frame.Gate.Lanes[0].Export != odd {
		t.Errorf("%q, %v", body, err)
	}
}
