//go:build unix

package view

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// looks is a browser's window. A headless one is at least 500 pixels wide;
// narrower ones are frames in it.
type looks struct {
	width, height int
	dark          bool
	name          string // of the screenshot
}

// found is what testdata/probe.js has found in the page.
type found struct {
	Errors   []string
	Width    int
	Overflow int
	State    string
	Says     string
	Server   string
	Tiles    map[string]string
	Tables   map[string][][]string
	Charts   map[string]struct{ Paths, Key []string }
	Dark     bool
	Contrast float64
	Scripts  int
	Images   int
	Pwned    bool
	Pressed  [][]string
	Holes    int
	More     string
}

const narrowest = 500

// look lets a browser show the page that h serves for five of its seconds, and
// asks what it sees. The picture is left in the folder that NFSBOX_SCREENSHOTS
// names, or else with the test's artefacts.
func look(t *testing.T, h http.Handler, w looks) *found {
	t.Helper()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		need.Missing(t, "chromium", err.Error())
	}
	folder := os.Getenv("NFSBOX_SCREENSHOTS")
	if folder == "" {
		folder = t.ArtifactDir()
	}
	picture, err := filepath.Abs(filepath.Join(folder, w.name+".png"))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(probed(h, w))
	defer s.Close()
	args := []string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
		"--user-data-dir=" + t.TempDir(), fmt.Sprintf("--window-size=%d,%d", max(w.width, narrowest), w.height),
		"--virtual-time-budget=5000", "--screenshot=" + picture, "--dump-dom",
	}
	if w.dark {
		args = append(args, "--force-dark-mode")
	}
	path := "/"
	if w.width < narrowest {
		path = "/frame"
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, append(args, s.URL+path)...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it has children
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", browser, err)
	}
	if info, err := os.Stat(picture); err != nil || info.Size() < 1000 {
		t.Errorf("no picture: %v", err)
	}
	m := regexp.MustCompile(`data-found="([^"]*)"`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("the page was not found: %s", out)
	}
	f := new(found)
	if err := json.Unmarshal([]byte(html.UnescapeString(string(m[1]))), f); err != nil {
		t.Fatal(err)
	}
	return f
}

// probed is h with the probe in its page, which may be framed by /frame.
func probed(h http.Handler, w looks) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/probe.js", func(out http.ResponseWriter, r *http.Request) { http.ServeFile(out, r, "testdata/probe.js") })
	mux.HandleFunc("/frame", func(out http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(out, `<!doctype html><body style="margin:0"><iframe src="/" style="border:0;width:%dpx;height:%dpx">`, w.width, w.height)
	})
	mux.HandleFunc("/", func(out http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		for k, v := range rec.Header() {
			out.Header()[k] = v
		}
		body := rec.Body.String()
		if r.URL.Path == "/" {
			out.Header().Del("Content-Length")
			out.Header().Del("X-Frame-Options")
			out.Header().Set("Content-Security-Policy", strings.Replace(policy, "frame-ancestors 'none'", "frame-ancestors 'self'", 1))
			body = strings.Replace(body, "<head>", `<head><script src="probe.js"></script>`, 1)
		}
		out.WriteHeader(rec.Code)
		_, _ = out.Write([]byte(body))
	})
	return mux
}

// busyPage is a View with five minutes behind it, which goes on working whenever it
// is asked.
func busyPage(f *fake) http.Handler {
	v := New(f.options())
	for i := range 150 {
		if f.s.Gate.Waiting = i % 40 / 4; i%60 > 30 {
			f.call(1, i*10, time.Duration(i)*100*time.Microsecond)
		}
		f.work()
		f.count(v)
		v.step()
	}
	f.slow(v)
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/view.json" {
			mu.Lock()
			f.work()
			f.count(v)
			v.step()
			mu.Unlock()
		}
		v.ServeHTTP(w, r)
	})
}

// TestBrowser has the page shown, at the desk and on a phone, by day and by
// night, and reads its figures.
func TestBrowser(t *testing.T) {
	need.Time(t, "the page in a browser")
	for _, w := range []looks{
		{width: 1280, height: 1500, name: "view-desktop"},
		{width: 320, height: 2600, dark: true, name: "view-phone-dark"}, // the hostile one is on a phone by day
		{width: 360, height: 2600, name: "view-360"},
		{width: 360, height: 2600, dark: true, name: "view-360-dark"},
		{width: 1600, height: 1500, name: "view-1600"},
		{width: 1600, height: 1500, dark: true, name: "view-1600-dark"},
	} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			f := look(t, busyPage(newFake()), w)
			if f.Width != w.width || f.Dark != w.dark {
				t.Errorf("the window is %d pixels wide; dark: %v", f.Width, f.Dark)
			}
			if f.Overflow > 0 {
				t.Errorf("the page is %d pixels wider than the window", f.Overflow)
			}
			if f.Contrast < 4.5 {
				t.Errorf("the contrast of text is %.1f", f.Contrast)
			}
			if len(f.Errors) > 0 || f.State != "live" || f.Says != "in service" {
				t.Errorf("the page is %s, says %q and has errors %q", f.State, f.Says, f.Errors)
			}
			if f.Holes > 0 {
				t.Errorf("%d rows of boxes have holes", f.Holes)
			}
			f.figures(t)
			if up := f.Pressed; len(up) != 2 || !slices.Equal(up[0], []string{"1000@127.0.0.1", "192.0.2.7", "192.0.2.9", "2001:db8:12:3456:789a:bcde:f012:3456", "ascending"}) ||
				up[1][4] != "descending" || up[1][0] != up[0][3] || up[1][3] != up[0][0] {
				t.Errorf("the heading was pressed: %q", up)
			}
		})
	}
}

// figures holds what the page shows against what the fake does all the time.
func (f *found) figures(t *testing.T) {
	for id, want := range map[string]string{
		"ops": "110", "p50": "999 µs", "p99": "4.0 ms", "out": "107 KiB/s", "in": "10.7 KiB/s", "errors": "1",
		"clients": "5", "connections": "7", "threads": "12", "cpu": "1.50", "memory": "64.0 MiB", "gate": "4 of 32",
	} {
		if got := f.Tiles[id]; got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	for id, want := range map[string][]string{
		"lanes": {"/data", "read", "4", "1", "20", "5", "2.0 ms", "0"}, "localio": {"2", "9", "3"},
		"limits": {"connections", "7", "4096", ""}, "caches": {"open files", "45", "5", "30", "4096", ""},
		"jobs": {"nightly", "running", "10", "40", "1.0 GiB", "1"}, "slow": {"WRITE", "/data/file", "192.0.2.8:999", "2.0 s"},
		"clients": {"192.0.2.7", "0", "20", "41.0 KiB/s"}, "files": {"/data/home/alice/projects/simulation/run-0042/results.h5", "5", "39.1 KiB/s"},
		"procedures": {"NFS READ", "100", "0", "999 µs", "999 µs", "50.0 ms", "9.8 KiB/s", "97.7 KiB/s"},
	} {
		rows := f.Tables[id]
		if id == "lanes" { // how many wait changes
			rows[0][3] = "1"
		}
		if len(rows) == 0 || !reflect.DeepEqual(rows[0][:len(want)], want) {
			t.Errorf("%s: %q, want %q", id, rows, want)
		}
	}
	for id, paths := range map[string]int{"rates": 2, "latency": 2, "threads": 3, "bytes": 2, "clients": 2, "localio": 1} {
		c := f.Charts[id]
		if len(c.Paths) != paths {
			t.Errorf("chart %s has %d paths, want %d", id, len(c.Paths), paths)
		}
		for _, d := range c.Paths {
			if strings.Contains(d, "NaN") || strings.Count(d, "L") < 150 {
				t.Errorf("chart %s: %q", id, d)
			}
		}
	}
	if key := f.Charts["rates"].Key; !slices.Equal(key, []string{"WRITE 10", "READ 100"}) {
		t.Errorf("the rates' key: %q", key)
	}
}

// TestBrowserHostile gives everything a name that wants to be markup.
func TestBrowserHostile(t *testing.T) {
	need.Time(t, "the page in a browser")
	t.Parallel()
	f := newFake()
	const hostile = `</td></script><script>top.pwned=1</script><img src=x onerror="top.pwned=1">` + "\u202e\x1b" + `&lt;" onload="top.pwned=1`
	const cleaned = `</td></script><script>top.pwned=1</script><img src=x onerror="top.pwned=1">\u{202e}\u{1b}&lt;" onload="top.pwned=1`
	f.hostile(hostile)
	for i := range 40 {
		f.s.Clients = append(f.s.Clients, Client{Name: fmt.Sprint("192.0.2.", 10+i), InFlight: 40 - i})
	}
	f.s.LocalIO = nil // one chart less
	v := New(f.options())
	v.Slow(SlowCall{At: f.now, Proc: hostile, Client: hostile, Detail: hostile, Took: time.Second})
	v.Count(Call{Client: hostile, User: hostile, File: hostile, Took: time.Second})
	f.work()
	v.step()
	got := look(t, v, looks{width: 390, height: 2600, name: "view-hostile"})
	if got.Pwned || got.Images != 0 || got.Scripts != 2 || len(got.Errors) > 0 {
		t.Errorf("injected: %v, %d images, %d scripts, %q", got.Pwned, got.Images, got.Scripts, got.Errors)
	}
	if got.Overflow > 0 {
		t.Errorf("the page is %d pixels wider than the window", got.Overflow)
	}
	if got.Holes > 0 || got.More != "all 44" || len(got.Tables["clients"]) != 12 {
		t.Errorf("%d rows with holes; of clients %d rows, and %q", got.Holes, len(got.Tables["clients"]), got.More)
	}
	for id, column := range map[string]int{"clients": 0, "files": 0, "procedures": 0, "slow": 1, "lanes": 0, "limits": 0, "caches": 0, "jobs": 1} {
		if rows := got.Tables[id]; !slices.ContainsFunc(rows, func(row []string) bool { return strings.Contains(row[column], cleaned) }) {
			t.Errorf("%s: %q", id, rows)
		}
	}
	if key := got.Charts["rates"].Key; len(key) != 2 || !strings.Contains(key[0], cleaned) || key[1] != "__proto__ 10" {
		t.Errorf("the rates' key: %q", key)
	}
}

// TestBrowserIll looks at a server that is not well, one that is gone, and one
// that has another life while it is watched.
func TestBrowserIll(t *testing.T) {
	need.Time(t, "the page in a browser")
	o := newFake().options()
	o.Health = func() error { return fmt.Errorf("draining") }
	ill := New(o)
	gone, asked := New(newFake().options()), 0
	fakes := []*fake{newFake(), newFake()}
	fakes[1].s.Started = epoch.Add(30 * time.Minute)
	lives, calls := []http.Handler{busyPage(fakes[0]), busyPage(fakes[1])}, 0
	for _, c := range []struct {
		name, state, says string
		h                 http.HandlerFunc
	}{
		{"view-ill", "ill", "draining", ill.ServeHTTP},
		{"view-gone", "lost", "no answer (the server says 502), figures are of ", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/view.json" {
				if asked++; asked > 1 {
					w.WriteHeader(http.StatusBadGateway)
					return
				}
			}
			gone.ServeHTTP(w, r)
		}},
		{"view-again", "live", "in service", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/view.json" {
				calls++
			}
			lives[min(calls/2, 1)].ServeHTTP(w, r)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := look(t, c.h, looks{width: 800, height: 1200, name: c.name})
			if got.State != c.state || !strings.HasPrefix(got.Says, c.says) || len(got.Errors) > 0 {
				t.Errorf("the page is %s, says %q and has errors %q", got.State, got.Says, got.Errors)
			}
			if c.name == "view-again" {
				if d := got.Charts["latency"].Paths; len(d) != 2 || strings.Count(d[0], "L") < 150 || strings.Contains(d[0], "-") {
					t.Errorf("the chart of the second life: %q", d)
				}
			}
		})
	}
}
