package daemon

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// logged are the lines of a file in JSON.
func logged(t *testing.T, path string) (all []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Errorf("%s: %q: %v", path, line, err)
		}
		all = append(all, one)
	}
	return all
}

// called are the procedures of the lines.
func called(lines []map[string]any) (all []string) {
	for _, l := range lines {
		name, _ := l["procedure"].(string)
		all = append(all, name)
	}
	return all
}

// TestLogFiles has a server log to files, and looks at what they say.
func TestLogFiles(t *testing.T) {
	tree, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(tree, "file"), []byte("still here"), 0o644); err != nil {
		t.Fatal(err)
	}
	conf := confOf(tree, t.TempDir())
	conf.Log.File, conf.Log.Requests = filepath.Join(dir, "server.log"), filepath.Join(dir, "requests.log")
	conf.Log.Format, conf.Log.Sample = "json", 1
	u, stderr, stop := run(t, conf)
	c := client(t, u)
	root := mount(t, c, "/")
	if got, _ := read(t, c, lookup(t, c, root, "file")); got != "still here" {
		t.Error(got)
	}
	if _, st := read(t, c, root); st != nfs3.NFS3ERR_ISDIR {
		t.Error(st)
	}
	hangUp(t, c)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if stderr.String() != "" {
		t.Errorf("on stderr:\n%s", stderr)
	}
	own := logged(t, conf.Log.File)
	if !slices.ContainsFunc(own, func(l map[string]any) bool { m, _ := l["msg"].(string); return strings.Contains(m, "mounted") }) {
		t.Errorf("the log says nothing of the mount: %v", own)
	}
	lines := logged(t, conf.Log.Requests)
	want := []string{"MOUNTPROC3_MNT", "NFSPROC3_LOOKUP", "NFSPROC3_READ", "NFSPROC3_READ"}
	if got := called(lines); !slices.Equal(got, want) {
		t.Fatalf("calls %q", got)
	}
	for i, status := range []string{"MNT3_OK", "NFS3_OK", "NFS3_OK", "NFS3ERR_ISDIR"} {
		l := lines[i]
		if path := []string{"/", "/file", "/file", "/"}[i]; l["path"] != path {
			t.Errorf("%v is not about %s", l, path)
		}
		host, _, err := net.SplitHostPort(l["client"].(string))
		took, waited, in, out := l["took"].(float64), l["waited"].(float64), l["in"].(float64), l["out"].(float64)
		if l["status"] != status || err != nil || host != "127.0.0.1" || l["uid"] != float64(os.Geteuid()) ||
			took <= 0 || waited < 0 || waited > took || in < 40 || out < 28 || l["failed"] != nil || l["xid"] == nil {
			t.Errorf("%v", l)
		}
	}
}

// TestLogReopen has somebody put the files aside, as logrotate does.
func TestLogReopen(t *testing.T) {
	dir, conf := t.TempDir(), confOf(t.TempDir(), t.TempDir())
	conf.Log.File, conf.Log.Requests = filepath.Join(dir, "server.log"), filepath.Join(dir, "requests.log")
	conf.Log.Format, conf.Log.Sample, conf.Log.MaxSize = "json", 1, 0
	conf.Fill()
	r := runReloader(t, conf)
	c := client(t, r.url)
	mount(t, c, "/")
	waitForLine(t, conf.Log.Requests, `MOUNTPROC3_MNT"`)
	for _, path := range []string{conf.Log.File, conf.Log.Requests} {
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
	}
	next := conf
	next.Log.Level, next.Log.Sample = "warn", 2
	r.reload(&next, nil)
	if _, st := read(t, c, nil); st == nfs3.NFS3_OK {
		t.Error("no handle is read")
	}
	waitForLine(t, conf.Log.Requests, `NFSPROC3_READ"`)
	if got := called(logged(t, conf.Log.Requests+".1")); !slices.Equal(got, []string{"MOUNTPROC3_MNT"}) {
		t.Errorf("put aside: %q", got)
	}
	if got := called(logged(t, conf.Log.Requests)); !slices.Equal(got, []string{"NFSPROC3_READ"}) {
		t.Errorf("then: %q", got)
	}
	text, err := os.ReadFile(conf.Log.File)
	if err != nil || !strings.Contains(string(text), `"keys":"log.sample"`) {
		t.Errorf("the log does not say what waits for a restart: %v\n%s", err, text)
	}
}

// waitForLine waits until a file has a line with a text.
func waitForLine(t *testing.T, path, text string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		got, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(got), text) && strings.HasSuffix(string(got), "\n") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: no %s: %v\n%s", path, text, err, got)
		}
	}
}

// TestLogLost takes the folder of the logs away: clients are served, what is lost is
// counted, and stderr tells of it, once.
func TestLogLost(t *testing.T) {
	dir, conf := filepath.Join(t.TempDir(), "log"), confOf(t.TempDir(), t.TempDir())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	conf.Log.File, conf.Log.Requests, conf.Log.Sample = filepath.Join(dir, "server.log"), filepath.Join(dir, "requests.log"), 1
	conf.Metrics = "127.0.0.1:0"
	conf.Fill()
	r := runReloader(t, conf)
	text, err := os.ReadFile(conf.Log.File)
	at := regexp.MustCompile(`msg=metrics url=(\S+)`).FindStringSubmatch(string(text))
	if err != nil || at == nil {
		t.Fatalf("the log does not say where: %v\n%s", err, text)
	}
	c := client(t, r.url)
	mount(t, c, "/")
	// From its first line on it has the file open. That line would make the folder again.
	waitForLine(t, conf.Log.Requests, "MOUNTPROC3_MNT")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, []byte("no folder"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.reload(&conf, nil)
	for range 10 {
		mount(t, c, "/")
	}
	lost := regexp.MustCompile(`nfsbox_log_dropped_total\{log="(server|requests)"\} ([1-9]\d*)`)
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		_, text := get(t, at[1]+"/metrics")
		if len(lost.FindAllString(text, -1)) == 2 {
			break
		}
		if time.Now().After(end) {
			t.Fatal(regexp.MustCompile(`(?m)^nfsbox_log.*$`).FindAllString(text, -1))
		}
	}
	if n := strings.Count(r.log.String(), "the log cannot be written, and loses lines"); n != 1 {
		t.Errorf("stderr tells of it %d times:\n%s", n, r.log)
	}
}

// TestLogCannotBegin refuses to serve with a log that could not be written.
func TestLogCannotBegin(t *testing.T) {
	for key, change := range map[string]func(*config.Log, string){
		"log.file":     func(l *config.Log, path string) { l.File = path },
		"log.requests": func(l *config.Log, path string) { l.Requests = path },
	} {
		conf := confOf(t.TempDir(), t.TempDir())
		change(&conf.Log, filepath.Join(t.TempDir(), "none", "x.log"))
		err := Serve(t.Context(), conf, World{Rand: counter()}, func(Running) error {
			t.Errorf("%s: it serves", key)
			return errors.New("stop")
		})
		if !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), key+": ") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// TestLogOutside refuses a log that clients could turn into another file.
func TestLogOutside(t *testing.T) {
	conf := confOf(t.TempDir(), t.TempDir())
	conf.Log.Requests = filepath.Join(conf.Exports[0].Dir, "requests.log")
	err := Serve(t.Context(), conf, World{Rand: counter()}, func(Running) error { return errors.New("it serves") })
	if err == nil || !strings.Contains(err.Error(), "the file of the log of requests "+conf.Log.Requests+" lies within") {
		t.Error(err)
	}
}
