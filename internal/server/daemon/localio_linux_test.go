package daemon

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/vfs"
)

// localDir is a directory for sockets.
func localDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// locally dials what has to be local, as the user of the process.
func locally(t *testing.T, url, dir string) *nfsbox.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := nfsbox.Dial(ctx, url, nfsbox.WithLocalIO(nfsbox.LocalIORequire), nfsbox.WithLocalIODir(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// open opens a file to be read.
func open(t *testing.T, c *nfsbox.Client, name string) vfs.File {
	t.Helper()
	root, _, err := c.FS().Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := c.FS().Open(t.Context(), vfs.At{Dir: root, Name: name}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return f
}

// TestLocalIO serves a file to a client on this host: a reload that leaves its
// export alone leaves its session alone, one that forbids local I/O for the export
// takes the descriptor back, and the metrics say all that.
func TestLocalIO(t *testing.T) {
	tree, dir := t.TempDir(), localDir(t)
	content := bytes.Repeat([]byte("still here "), 1000)
	if err := os.WriteFile(filepath.Join(tree, "file"), content, 0o666); err != nil {
		t.Fatal(err)
	}
	conf := confOf(tree, t.TempDir())
	conf.LocalIO, conf.LocalIODir, conf.Metrics = config.LocalIOOn, dir, "127.0.0.1:0"
	conf.Fill()
	r := runReloader(t, conf)
	c := locally(t, r.url, dir)
	f := open(t, c, "file")
	look := func(what string) {
		t.Helper()
		p := make([]byte, len(content)+1)
		if n, _, err := vfs.ReadFull(t.Context(), f, p, 0); err != nil || !bytes.Equal(p[:n], content) {
			t.Errorf("%s: %d bytes, %v", what, n, err)
		}
	}
	look("at first")
	if s := c.Stats().LocalIO; s.State != "local" || s.Reads == 0 || s.Files != 1 {
		t.Errorf("%+v", s)
	}

	other := changed(conf, func(c *config.Config) {
		c.Log.Level = "debug"
		c.Exports = append(c.Exports, config.Export{Path: "/other", Dir: t.TempDir(), Handles: "auto"})
	})
	r.reload(other, nil)
	look("after a reload")
	if s := c.Stats().LocalIO; s.State != "local" || s.Handshakes != 1 || s.Revoked != 0 {
		t.Errorf("a reload has cost the session: %+v", s)
	}
	metrics := regexp.MustCompile(`msg=metrics url=(\S+)`).FindStringSubmatch(r.log.String())
	metricsSay(t, metrics[1],
		"nfsbox_localio_sessions 1", "nfsbox_localio_files 1", `nfsbox_localio_opens_total{why="ok"} 1`,
		`nfsbox_localio_opens_total{why="identity"} 0`, "nfsbox_localio_revoked_total 0", "nfsbox_localio_sessions_total 1",
		"nfsbox_localio_strangers 0", "nfsbox_localio_strangers_crowded_total 0",
	)

	no := false
	r.reload(changed(*other, func(c *config.Config) { c.Exports[0].LocalIO = &no }), nil)
	if _, text := get(t, metrics[1]+"/metrics"); !strings.Contains(text, "nfsbox_localio_revoked_total 1") {
		t.Error("the descriptor was not taken back")
	}
	if s := c.Stats().LocalIO; s.State != "local" || s.Handshakes != 1 {
		t.Errorf("the session has ended with the export's consent: %+v", s)
	}
}

// TestLocalIODirectory does without local I/O where nobody has asked for it and it
// cannot be had, and does not begin where somebody has.
func TestLocalIODirectory(t *testing.T) {
	in := t.TempDir()
	file := filepath.Join(in, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	conf := confOf(t.TempDir(), t.TempDir())
	conf.LocalIO, conf.LocalIODir = config.LocalIOOn, file
	err := Serve(t.Context(), conf, World{Rand: counter()}, func(Running) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "name another localio-dir") {
		t.Errorf("%v", err)
	}
	conf.LocalIODir = ""
	if os.Geteuid() != 0 {
		t.Setenv("XDG_RUNTIME_DIR", file)
		u, log, _ := run(t, conf)
		mount(t, client(t, u), "/")
		if !strings.Contains(log.String(), "level=INFO msg=\"no local I/O") {
			t.Errorf("the log does not say what there is not:\n%s", log)
		}
	}
}
