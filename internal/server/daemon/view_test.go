package daemon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/view"
	"github.com/nfsbox/nfsbox/internal/testkit/logbuf"
)

// viewAt is where the log says that the live view is.
func viewAt(t *testing.T, log *logbuf.Buffer) string {
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
	c := confOf(dir, t.TempDir())
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
	me := fmt.Sprint(os.Geteuid())
	if len(f.Clients) != 1 || f.Clients[0].Client != "127.0.0.1" || f.Clients[0].User != me || f.Clients[0].Conns != 1 || f.Clients[0].Rate <= 0 || f.Clients[0].File != "/file" {
		t.Errorf("%+v", f.Clients)
	}
	if !slices.ContainsFunc(f.Files, func(x view.FileFrame) bool { return x.File == "/file" && x.Client == "127.0.0.1" && x.P99 > 0 }) {
		t.Errorf("%+v", f.Files)
	}
	for _, limit := range f.Limits {
		if limit.Max == 0 {
			t.Errorf("%+v", limit)
		}
	}
	if len(f.Caches) != 1 || !strings.HasSuffix(f.Caches[0].Name, dir) || f.Caches[0].Max == 0 {
		t.Errorf("%+v", f.Caches)
	}
	hangUp(t, cl)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestViewInTheOpen warns of a view that others can reach.
func TestViewInTheOpen(t *testing.T) {
	c := confOf(t.TempDir(), t.TempDir())
	c.HTTP = ":0"
	_, log, _ := run(t, c)
	if !strings.Contains(log.String(), "level=WARN msg=\"everybody who can reach the address of http") {
		t.Errorf("no warning in\n%s", log)
	}
}
