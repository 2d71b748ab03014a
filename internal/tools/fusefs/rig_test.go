//go:build linux

package fusefs

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/memfs"
	"github.com/nfsbox/nfsbox/vfs/osfs"
)

// bound is how long a test waits for what has to come.
const bound = 60 * time.Second

// serve serves a directory of this host, in this process.
func serve(t *testing.T, dir string) (url string) {
	t.Helper()
	tree, err := osfs.Open(dir, osfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	url, stop := listen(t, export.Export{Path: "/", FS: tree})
	t.Cleanup(func() {
		stop()
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	return url
}

// serveMemory serves an empty tree in memory.
func serveMemory(t *testing.T) (url string) {
	t.Helper()
	url, stop := listen(t, export.Export{Path: "/", FS: memfs.New(memfs.Options{Mode: 0o777})})
	t.Cleanup(stop)
	return url
}

func listen(t *testing.T, x export.Export) (url string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- nfsserver.Serve(ctx, l, x) }()
	return "nfs://" + l.Addr().String() + "/", func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func dial(t *testing.T, url string, opts ...nfsbox.Option) *nfsbox.Client {
	t.Helper()
	c, err := nfsbox.Dial(t.Context(), url, append(opts, nfsbox.WithLocalIO(nfsbox.LocalIOOff))...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mount mounts what url names, until the test ends.
func mount(t *testing.T, url string, opt Options) string {
	t.Helper()
	m, _ := mountClient(t, dial(t, url), opt)
	return m.dir
}

// mountFS mounts a file system that needs no closing.
func mountFS(t *testing.T, fs vfs.FS, opt Options) string {
	t.Helper()
	m, _ := mountTree(t, fs, func() error { return nil }, opt)
	return m.dir
}

// mountClient mounts a client's file system until the test ends, which also closes the client.
func mountClient(t *testing.T, c *nfsbox.Client, opt Options) (m *Mount, drained <-chan Unfinished) {
	t.Helper()
	return mountTree(t, c.FS(), c.Close, opt)
}

func mountTree(t *testing.T, fs vfs.FS, after func() error, opt Options) (m *Mount, drained <-chan Unfinished) {
	t.Helper()
	need.Fuse(t)
	dir := filepath.Join(t.TempDir(), "mnt")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if opt.Source == "" {
		opt.Source = "test"
	}
	if opt.Times == (Times{}) {
		opt.Times = DefaultTimes
	}
	opt.AllowOther = os.Geteuid() == 0
	opt.Log = func(text string) { t.Log("log: " + text) }
	opt.Rand = func(p []byte) { _, _ = unix.Getrandom(p, 0) }
	m, err := New(fs, dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	end := make(chan Unfinished, 1)
	served := make(chan struct{})
	go func() {
		defer close(served)
		m.Serve()
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		end <- m.Drain(ctx)
		if err := after(); err != nil {
			t.Error(err)
		}
	}()
	if err := m.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if m.Unmount(false) != nil { // in use, or unmounted by the test
			_ = Unmount(dir, true, true) // a mount that is in use must not keep the tests: this aborts it
		}
		select {
		case <-served:
		case <-time.After(bound):
			t.Error("the mount does not end")
		}
	})
	return m, end
}
