package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/testkit/port"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// given are the addresses that tests which run beside one another have.
var given sync.Map

// aPort is an address that a server of a test has again and again.
func aPort(t *testing.T) string {
	t.Helper()
	for {
		at, err := port.Free("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		if _, there := given.LoadOrStore(at, true); !there {
			return at
		}
	}
}

// proxyOf is a configuration that stands for the server at an address.
func proxyOf(t *testing.T, at, listen, state string) config.Config {
	t.Helper()
	c := confOf("", state)
	c.Listen = []string{listen}
	c.Exports[0].From = "nfs://" + at + "/?noresvport"
	return c
}

func getattr(t *testing.T, c *oncrpc.Client, h []byte) nfs3.Nfsstat3 {
	t.Helper()
	var res nfs3.GETATTR3res
	reply, err := c.Call(t.Context(), nfs3.NFSPROC3_GETATTR, auth(t), &nfs3.GETATTR3args{Object: nfs3.NfsFh3{Data: h}}, &res)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Release()
	return res.Status
}

// readFile reads up to 100 bytes of a file.
func readFile(t *testing.T, c *oncrpc.Client, h []byte) (string, nfs3.Nfsstat3) {
	t.Helper()
	var res nfs3.READ3res
	res.Resok.Data = make([]byte, 100)
	reply, err := c.Call(t.Context(), nfs3.NFSPROC3_READ, auth(t), &nfs3.READ3args{File: nfs3.NfsFh3{Data: h}, Count: 100}, &res)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Release()
	return string(res.Resok.Data), res.Status
}

// until asks again until the answer is that one.
func until(t *testing.T, want nfs3.Nfsstat3, ask func() nfs3.Nfsstat3) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		got := ask()
		if got == want {
			return
		}
		if got != nfs3.NFS3ERR_JUKEBOX && got != nfs3.NFS3_OK || time.Now().After(end) {
			t.Fatalf("%v, and no %v", got, want)
		}
	}
}

func tree(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte(text), 0o666); err != nil { //nolint:gosec // Everybody's, whoever runs the test.
		t.Fatal(err)
	}
	return dir
}

// TestProxy: what another server has is read through this one, by handles that outlive both. While that does not answer,
// clients are told to come again.
func TestProxy(t *testing.T) {
	t.Parallel() // it waits for what is not there
	far, near := aPort(t), aPort(t)
	farConf := confOf(tree(t, "content"), t.TempDir())
	farConf.Listen = []string{far}
	proxyConf := proxyOf(t, far, near, t.TempDir())
	_, _, stopFar := run(t, farConf)
	url, _, stop := run(t, proxyConf)

	c := client(t, url)
	root := mount(t, c, "/")
	f := lookup(t, c, root, "f")
	if got, st := readFile(t, c, f); got != "content" || st != nfs3.NFS3_OK {
		t.Errorf("%q, %v", got, st)
	}
	hangUp(t, c)
	if err := stop(); err != nil {
		t.Error(err)
	}

	url, log, stop := run(t, proxyConf) // the proxy has restarted
	c = client(t, url)
	if got, st := readFile(t, c, f); got != "content" || st != nfs3.NFS3_OK {
		t.Errorf("after a restart of the proxy: %q, %v", got, st)
	}
	if err := stopFar(); err != nil {
		t.Error(err)
	}
	until(t, nfs3.NFS3ERR_JUKEBOX, func() nfs3.Nfsstat3 { return getattr(t, c, f) })
	if !strings.Contains(log.String(), "the upstream does not answer") {
		t.Errorf("the log does not say so:\n%s", log)
	}
	hangUp(t, c)
	if err := stop(); err != nil {
		t.Error(err)
	}

	url, log, stop = run(t, proxyConf) // which has been reached before
	if !strings.Contains(log.String(), "the upstream does not answer yet") {
		t.Errorf("the log does not say so:\n%s", log)
	}
	c = client(t, url)
	if st := getattr(t, c, f); st != nfs3.NFS3ERR_JUKEBOX {
		t.Errorf("begun without the other server: %v", st)
	}
	_, _, stopFar = run(t, farConf)
	until(t, nfs3.NFS3_OK, func() nfs3.Nfsstat3 { return getattr(t, c, f) })
	if got, st := readFile(t, c, f); got != "content" || st != nfs3.NFS3_OK {
		t.Errorf("when it is back: %q, %v", got, st)
	}
	hangUp(t, c)
	if err := errors.Join(stop(), stopFar()); err != nil {
		t.Error(err)
	}
}

// TestProxyFirstStart: a server that was never reached may be a mistake, and a start says so; so does a check.
func TestProxyFirstStart(t *testing.T) {
	t.Parallel()     // it waits for what is not there
	gone := aPort(t) // where nobody listens
	c := proxyOf(t, gone, "127.0.0.1:0", t.TempDir())
	w := World{Rand: counter()}
	for what, start := range map[string]func() error{
		"start": func() error {
			return Serve(t.Context(), c, w, func(Running) error { return errors.New("it has begun") })
		},
	} {
		if err := start(); err == nil || !strings.Contains(err.Error(), "cannot be reached, and was not before") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := Check(c, w); err == nil || !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("check: %v", err)
	}
}

// TestProxyRefused: what cannot be served is refused in words, also where the server was reached before.
func TestProxyRefused(t *testing.T) {
	far := aPort(t)
	farConf := confOf(tree(t, "content"), t.TempDir())
	farConf.Listen = []string{far}
	run(t, farConf)
	w := World{Rand: counter()}
	here := aPort(t)
	for what, c := range map[string]struct {
		change func(*config.Export)
		want   string
	}{
		"a file":         {func(e *config.Export) { e.From = "nfs://" + far + "/f?noresvport" }, "it is no directory"},
		"nothing":        {func(e *config.Export) { e.From = "nfs://" + far + "/nope?noresvport" }, "no such file"},
		"itself":         {func(e *config.Export) { e.From = "nfs://" + here + "/" }, "is this server itself"},
		"a user":         {func(e *config.Export) { e.From += "&uid=7" }, "callers are there who they are here"},
		"another cache":  {func(e *config.Export) { e.From += "&fsc" }, "the cache is set by cache"},
		"no argument":    {func(e *config.Export) { e.From += "&nope=1" }, "nope"},
		"no cache there": {func(e *config.Export) { e.Cache = filepath.Join(e.From, "nope") }, "nope"},
	} {
		conf := proxyOf(t, far, here, t.TempDir())
		c.change(&conf.Exports[0])
		err := Serve(t.Context(), conf, w, func(Running) error { return errors.New("it has begun") })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
		if what == "no cache there" {
			continue // a check makes nothing, and so opens none
		}
		if err := Check(conf, w); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, checked: %v", what, err)
		}
	}
	if err := Check(proxyOf(t, far, here, t.TempDir()), w); err != nil {
		t.Errorf("what is right is refused: %v", err)
	}
}

// TestProxyVerbatim: handles are the other server's own, and nothing is beside the export.
func TestProxyVerbatim(t *testing.T) {
	far := aPort(t)
	farConf := confOf(tree(t, "content"), t.TempDir())
	farConf.Listen = []string{far}
	farURL, _, _ := run(t, farConf)
	direct := client(t, farURL)
	conf := proxyOf(t, far, "127.0.0.1:0", t.TempDir())
	conf.Exports[0].Handles = "verbatim"
	url, _, stop := run(t, conf)
	c := client(t, url)
	a, b := lookup(t, direct, mount(t, direct, "/"), "f"), lookup(t, c, mount(t, c, "/"), "f")
	if string(a) != string(b) {
		t.Errorf("%x there is %x here", a, b)
	}
	if got, st := readFile(t, c, a); got != "content" || st != nfs3.NFS3_OK {
		t.Errorf("%q, %v", got, st)
	}
	hangUp(t, c)
	hangUp(t, direct)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestProxyReload: a reload keeps what stands for another server, and takes in another one beside it.
func TestProxyReload(t *testing.T) {
	t.Parallel() // it waits for what is not there
	far := aPort(t)
	farConf := confOf(tree(t, "content"), t.TempDir())
	farConf.Listen = []string{far}
	_, _, stopFar := run(t, farConf)
	before := proxyOf(t, far, "127.0.0.1:0", t.TempDir())
	before.Exports[0].Path = "/far"
	after := before
	after.Exports = append(after.Exports[:1:1], confOf(tree(t, "mine"), "").Exports[0])
	after.Exports[1].Path = "/near"
	reload := make(chan os.Signal)
	url, log, stop := runIn(t, before, World{Reload: reload, Reread: func() (*config.Config, error) {
		c := after
		c.Fill()
		return &c, nil
	}})
	c := client(t, url)
	f := lookup(t, c, mount(t, c, "/far"), "f")
	if err := stopFar(); err != nil { // a reload asks nobody about what has not changed
		t.Error(err)
	}
	reload <- syscall.SIGHUP
	for end := time.Now().Add(2 * time.Minute); !strings.Contains(log.String(), "reload: done"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no reload:\n%s", log)
		}
	}
	if got, st := readFile(t, c, lookup(t, c, mount(t, c, "/near"), "f")); got != "mine" || st != nfs3.NFS3_OK {
		t.Errorf("%q, %v", got, st)
	}
	run(t, farConf)
	until(t, nfs3.NFS3_OK, func() nfs3.Nfsstat3 { return getattr(t, c, f) })
	hangUp(t, c)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestProxyMetrics: what is counted at another server, and of the cache, is among the metrics, by names that Prometheus likes.
func TestProxyMetrics(t *testing.T) {
	far, cache := aPort(t), t.TempDir()
	if err := os.Chmod(cache, 0o700); err != nil { //nolint:gosec // A directory.
		t.Fatal(err)
	}
	farConf := confOf(tree(t, "content"), t.TempDir())
	farConf.Listen = []string{far}
	run(t, farConf)
	c := proxyOf(t, far, "127.0.0.1:0", t.TempDir())
	c.Exports[0].Cache, c.Metrics = cache, "127.0.0.1:0"
	u, log, _ := run(t, c)
	rpc := client(t, u)
	if got, st := readFile(t, rpc, lookup(t, rpc, mount(t, rpc, "/"), "f")); got != "content" || st != nfs3.NFS3_OK {
		t.Errorf("%q, %v", got, st)
	}
	_, text := get(t, metricsURL(log)+"/metrics")
	for _, want := range []string{
		"nfsbox_upstream_cache_misses_total{from=\"" + c.Exports[0].From + "\"} 1\n",
		"nfsbox_upstream_cache_damaged_total{from=\"" + c.Exports[0].From + "\"} 0\n",
		"nfsbox_upstream_calls_total{from=\"" + c.Exports[0].From + "\"} ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "nfsbox_upstream_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}
