package daemon

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/metric"
	"github.com/nfsbox/nfsbox/internal/server/fileapi"
	"github.com/nfsbox/nfsbox/internal/server/view"
	"github.com/nfsbox/nfsbox/nfsserver"
)

// viewAt is where the log says that the live view is.
func viewAt(t *testing.T, log *logBuffer) string {
	t.Helper()
	found := regexp.MustCompile(`msg=http url=(\S+)`).FindStringSubmatch(log.String())
	if found == nil {
		t.Fatalf("the log does not say where:\n%s", log)
	}
	return found[1]
}

// frame reads what the view says.
func frame(t *testing.T, url string) *view.Frame {
	t.Helper()
	status, text := get(t, url+"/view.json")
	f := new(view.Frame)
	if err := json.Unmarshal([]byte(text), f); err != nil || status != http.StatusOK {
		t.Fatalf("%d, %v: %s", status, err, text)
	}
	return f
}

// TestView looks at a server through its live view.
func TestView(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("still here"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := config(dir, t.TempDir())
	c.HTTP = "127.0.0.1:0"
	u, log, stop := runIn(t, c, World{Version: "v1.2.3"})
	at := viewAt(t, log)
	if strings.Contains(log.String(), "level=WARN msg=\"everybody who can reach the address of http") {
		t.Error("loopback is warned of")
	}
	if status, text := get(t, at+"/"); status != http.StatusOK || !strings.Contains(text, "<html") {
		t.Error(status, text)
	}
	if status, text := get(t, at+"/healthz"); status != http.StatusOK || text != "ok\n" {
		t.Error(status, text)
	}
	for _, path := range []string{"/metrics", "/debug/pprof/"} {
		if status, _ := get(t, at+path); status != http.StatusNotFound {
			t.Errorf("%s beside the view: %d", path, status)
		}
	}
	cl := client(t, u)
	if got, _ := read(t, cl, lookup(t, cl, mount(t, cl, "/"), "file")); got != "still here" {
		t.Fatal(got)
	}
	isRead := func(p view.ProcFrame) bool { return p.Program == "NFS" && p.Name == "READ" }
	f := frame(t, at)
	for end := time.Now().Add(time.Minute); !slices.ContainsFunc(f.Procs, isRead) && time.Now().Before(end); f = frame(t, at) {
		time.Sleep(50 * time.Millisecond) // the view has its own pace
	}
	if f.Version != "v1.2.3" || f.URL != u || !f.Healthy || f.Conns.Open != 1 || f.Process.Threads < 1 || f.LocalIO != nil {
		t.Errorf("%+v", f)
	}
	if !slices.ContainsFunc(f.Procs, func(p view.ProcFrame) bool {
		return isRead(p) && p.Version == 3 && p.Calls == 1 && p.Max > 0
	}) {
		t.Errorf("%+v", f.Procs)
	}
	for _, limit := range f.Limits {
		if limit.Max == 0 {
			t.Errorf("%+v", limit)
		}
	}
	if len(f.Caches) != 1 || !strings.HasSuffix(f.Caches[0].Name, dir) || f.Caches[0].Max == 0 {
		t.Errorf("%+v", f.Caches)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestViewOfScrape says in the words of the view what the rooms have counted.
func TestViewOfScrape(t *testing.T) {
	s := scrape{process: process{threads: 7, cpu: time.Second, memory: 1 << 20}}
	s.server.LocalIO = &nfsserver.LocalIOStats{Sessions: 1, Files: 2, Opened: 3, Revoked: 4, Refused: map[string]uint64{"identity": 5, "busy": 6}}
	started := time.Unix(1, 0)
	got := s.view(&Config{MaxConnections: 9}, "nfs://h/", "v1", started)
	if want := (view.LocalIO{Sessions: 1, Files: 2, Opened: 3, Refused: 11, Revoked: 4}); got.LocalIO == nil || *got.LocalIO != want {
		t.Errorf("%+v", got.LocalIO)
	}
	if want := (view.Process{Threads: 7, CPU: time.Second, Memory: 1 << 20}); got.Process != want {
		t.Errorf("%+v", got.Process)
	}
	if got.Started != started || got.Limits[0] != (view.Limit{Name: "connections", Max: 9}) {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct{ proc, program, name string }{
		{"NFSPROC3_READ", "NFS", "READ"}, {"MOUNTPROC3_NULL", "MOUNT", "NULL"}, {"NLMPROC4_NM_LOCK", "NLM", "NM_LOCK"}, {"7/1/2", "", "7/1/2"},
	} {
		if program, name := spoken(c.proc); program != c.program || name != c.name {
			t.Errorf("%s: %q, %q", c.proc, program, name)
		}
	}
}

// TestViewOfAPI has the calls of the file API, with their bytes, always in one order.
func TestViewOfAPI(t *testing.T) {
	s := scrape{api: &fileapi.Snapshot{Calls: map[string]fileapi.Call{
		"Put": {BytesIn: 7, BytesOut: 8, Time: &metric.Snapshot{Count: 3}}, "Echo": {Errors: 1, Time: &metric.Snapshot{Count: 2}},
		"Get": {Time: &metric.Snapshot{}}, "List": {Time: &metric.Snapshot{}}, "Stat": {Time: &metric.Snapshot{}},
	}}}
	got := s.view(&Config{}, "nfs://h/", "v1", time.Unix(1, 0)).Procs
	if !slices.IsSortedFunc(got, func(a, b view.Proc) int { return strings.Compare(a.Name, b.Name) }) || len(got) != 5 {
		t.Errorf("%+v", got)
	}
	if e, p := got[0], got[3]; e.Calls != 2 || e.Errors != 1 || p.Calls != 3 || p.BytesIn != 7 || p.BytesOut != 8 || p.Program != "API" {
		t.Errorf("%+v", got)
	}
}

// TestViewInTheOpen warns of a view that others can reach.
func TestViewInTheOpen(t *testing.T) {
	c := config(t.TempDir(), t.TempDir())
	c.HTTP = ":0"
	_, log, _ := run(t, c)
	if !strings.Contains(log.String(), "level=WARN msg=\"everybody who can reach the address of http") {
		t.Errorf("no warning in\n%s", log)
	}
}
