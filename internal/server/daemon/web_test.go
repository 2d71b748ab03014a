package daemon

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/testkit/logbuf"
)

// get fetches a page.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	return res.StatusCode, string(body)
}

// TestMetrics asks a server at work how it does.
func TestMetrics(t *testing.T) {
	tree := t.TempDir()
	bytes := filepath.Join(t.TempDir(), "no text \xff")
	if err := os.Mkdir(bytes, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tree, "file"), []byte("still here"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := confOf(tree, t.TempDir())
	c.Exports = append(c.Exports, config.Export{Path: "/bytes", Dir: bytes})
	c.Metrics, c.Pprof = "127.0.0.1:0", "localhost:0"
	u, log, _ := run(t, c)
	cl := client(t, u)
	if got, _ := read(t, cl, lookup(t, cl, mount(t, cl, "/"), "file")); got != "still here" {
		t.Fatal(got)
	}
	urls := regexp.MustCompile(`msg=(metrics|pprof) url=(\S+)`).FindAllStringSubmatch(log.String(), -1)
	if len(urls) != 2 {
		t.Fatalf("the log does not say where:\n%s", log)
	}
	metricsSay(t, urls[0][2],
		`nfsbox_rpc_calls_total{procedure="NFSPROC3_READ",version="3"} 1`,
		`nfsbox_rpc_duration_seconds_count{procedure="NFSPROC3_LOOKUP",version="3"} 1`,
		`nfsbox_rpc_duration_seconds_bucket{procedure="NFSPROC3_READ",version="3",le="+Inf"} 1`,
		`nfsbox_connections 1`, `nfsbox_clients 1`, `nfsbox_request_bytes_limit 1.34217728e+08`,
		`nfsbox_gate_waiting{export="/",lane="read"} 0`, `nfsbox_gate_wait_seconds_count{lane="sync"}`,
		`nfsbox_descriptors{dir="`+tree+`"}`, `nfsbox_replies_evicted_young_total 0`, `nfsbox_locks 0`,
		`no text \\xff`, `nfsbox_process_threads`, `go_goroutines`, `process_open_fds`, `nfsbox_slow_calls_total 0`,
	)
	if status, text := get(t, urls[0][2]+"/healthz"); status != http.StatusOK || text != "ok\n" {
		t.Error(status, text)
	}
	if status, _ := get(t, urls[0][2]+"/debug/pprof/"); status != http.StatusNotFound {
		t.Error("profiles beside metrics:", status)
	}
	if status, _ := get(t, urls[1][2]+"/debug/pprof/cmdline"); status != http.StatusOK {
		t.Error("profiles:", status)
	}
}

// nullCall is a call of MOUNT's NULL with AUTH_NONE.
func nullCall(xid uint32) (b []byte) {
	for _, v := range []uint32{xid, 0, 2, 100005, 3, 0, 0, 0, 0, 0} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

// TestMetricsOfBothTransports reads metrics when one procedure has been called
// over TCP and over UDP.
func TestMetricsOfBothTransports(t *testing.T) {
	c := confOf(t.TempDir(), t.TempDir())
	c.UDP, c.Metrics = true, "127.0.0.1:0"
	u, log, _ := run(t, c)
	for _, network := range []string{"tcp", "udp"} {
		conn, err := net.Dial(network, regexp.MustCompile(`//([^/]+)/`).FindStringSubmatch(u)[1])
		if err != nil {
			t.Fatal(err)
		}
		call := nullCall(7)
		if network == "tcp" {
			call = append(binary.BigEndian.AppendUint32(nil, 1<<31|uint32(len(call))), call...)
		}
		if _, err := conn.Write(call); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAtLeast(conn, make([]byte, 100), 24); err != nil {
			t.Fatal(network, err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	url := regexp.MustCompile(`msg=metrics url=(\S+)`).FindStringSubmatch(log.String())[1]
	metricsSay(t, url,
		`nfsbox_rpc_calls_total{procedure="MOUNTPROC3_NULL",version="3"} 2`,
		`nfsbox_rpc_duration_seconds_count{procedure="MOUNTPROC3_NULL",version="3"} 2`,
	)
}

// TestRebinding tells nothing to a page whose name was pointed at this host, on
// loopback; at other addresses names are how servers are found.
func TestRebinding(t *testing.T) {
	c := confOf(t.TempDir(), t.TempDir())
	c.Metrics, c.HTTP, c.Pprof = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	_, log, _ := run(t, c)
	paths := map[string]string{"metrics": "/metrics", "http": "/view.json", "pprof": "/debug/pprof/cmdline"}
	urls := regexp.MustCompile(`msg=(metrics|http|pprof) url=(\S+)`).FindAllStringSubmatch(log.String(), -1)
	if len(urls) != len(paths) {
		t.Fatal(log)
	}
	for _, u := range urls {
		for host, want := range map[string]int{
			"": http.StatusOK, "localhost:1": http.StatusOK, "[::1]": http.StatusOK, "LOCALHOST": http.StatusOK,
			"evil.example": http.StatusForbidden, "evil.example:9465": http.StatusForbidden, "127.0.0.1.evil.example": http.StatusForbidden,
			"localhost.": http.StatusForbidden, ":80": http.StatusForbidden,
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u[2]+paths[u[1]], nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := res.Body.Close(); err != nil {
				t.Error(err)
			}
			if res.StatusCode != want {
				t.Errorf("%s as %q: %s", u[1], host, res.Status)
			}
		}
	}
}

// asker asks for health as soon as the log says where.
type asker struct {
	logbuf.Buffer
	t      *testing.T
	status int
}

func (a *asker) Write(p []byte) (int, error) {
	if at := regexp.MustCompile(`msg=metrics url=(\S+)`).FindSubmatch(p); at != nil {
		a.status, _ = get(a.t, string(at[1])+"/healthz")
	}
	return a.Buffer.Write(p)
}

// TestHealthAtTheStart does not say that clients are served before they are.
func TestHealthAtTheStart(t *testing.T) {
	c, log, after := confOf(t.TempDir(), t.TempDir()), &asker{t: t}, 0
	c.Metrics = "127.0.0.1:0"
	ctx, cancel := context.WithCancel(t.Context())
	err := Serve(ctx, c, World{Rand: counter(), Log: log}, func(Running) error {
		after, _ = get(t, metricsURL(&log.Buffer)+"/healthz")
		cancel()
		return nil
	})
	if err != nil || log.status != http.StatusServiceUnavailable || after != http.StatusOK {
		t.Errorf("%d before, %d after, %v", log.status, after, err)
	}
}
