package daemon

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/testkit/leak"
	"github.com/nfsbox/nfsbox/internal/testkit/logbuf"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// TestMain looks for goroutines of ours when all tests have cleaned up.
func TestMain(m *testing.M) { leak.Main(m) }

// config serves dir on loopback, at a port of its own, and over it alone.
func confOf(dir, state string) config.Config {
	c, x := config.Default(), config.DefaultExport()
	c.LocalIO = config.LocalIOOff
	c.Listen, c.StateDir = []string{"127.0.0.1:0"}, state
	x.Dir = dir
	c.Exports = []config.Export{x}
	return c
}

// run serves until stop is called, which returns what Serve returned.
func run(t *testing.T, c config.Config) (url string, log *logbuf.Buffer, stop func() error) {
	t.Helper()
	return runIn(t, c, World{})
}

func runIn(t *testing.T, c config.Config, w World) (url string, log *logbuf.Buffer, stop func() error) {
	t.Helper()
	log = &logbuf.Buffer{}
	w.Log = log
	if w.Rand == nil {
		w.Rand = counter()
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- Serve(ctx, c, w, func(r Running) error {
			ready <- r.URL
			return nil
		})
	}()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	select {
	case url = <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatalf("%v\n%s", err, log)
	}
	return url, log, stop
}

// client is a raw client of the server at u.
func client(t *testing.T, u string) *oncrpc.Client {
	t.Helper()
	parsed, err := url.Parse(u)
	if err != nil {
		t.Fatal(err)
	}
	c := oncrpc.NewClient(oncrpc.ClientOptions{Dial: func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", parsed.Host)
	}})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// hangUp closes a client before its server ends. A client that is idle does not notice
// that the server has closed its side, and the server would wait two seconds for it.
func hangUp(t *testing.T, c *oncrpc.Client) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func auth(t *testing.T) oncrpc.Auth {
	a := oncrpc.AuthSys{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	auth, err := a.Auth()
	if err != nil {
		t.Fatal(err)
	}
	return auth
}

func mount(t *testing.T, c *oncrpc.Client, path string) []byte {
	t.Helper()
	var res mount3.Mountres3
	reply, err := c.Call(t.Context(), mount3.MOUNTPROC3_MNT, auth(t), &mount3.Mountargs{Path: []byte(path)}, &res)
	if err != nil || res.FhsStatus != mount3.MNT3_OK {
		t.Fatalf("MNT %q: %v, %v", path, res.FhsStatus, err)
	}
	defer reply.Release()
	return bytes.Clone(res.Mountinfo.Fhandle)
}

func lookup(t *testing.T, c *oncrpc.Client, dir []byte, name string) []byte {
	t.Helper()
	var res nfs3.LOOKUP3res
	args := nfs3.LOOKUP3args{What: nfs3.Diropargs3{Dir: nfs3.NfsFh3{Data: dir}, Name: []byte(name)}}
	reply, err := c.Call(t.Context(), nfs3.NFSPROC3_LOOKUP, auth(t), &args, &res)
	if err != nil || res.Status != nfs3.NFS3_OK {
		t.Fatalf("LOOKUP %q: %v, %v", name, res.Status, err)
	}
	defer reply.Release()
	return bytes.Clone(res.Resok.Object.Data)
}

func rename(t *testing.T, c *oncrpc.Client, fromDir []byte, from string, toDir []byte, to string) {
	t.Helper()
	var res nfs3.RENAME3res
	args := nfs3.RENAME3args{
		From: nfs3.Diropargs3{Dir: nfs3.NfsFh3{Data: fromDir}, Name: []byte(from)},
		To:   nfs3.Diropargs3{Dir: nfs3.NfsFh3{Data: toDir}, Name: []byte(to)},
	}
	reply, err := c.Call(t.Context(), nfs3.NFSPROC3_RENAME, auth(t), &args, &res)
	if err != nil || res.Status != nfs3.NFS3_OK {
		t.Fatalf("RENAME: %v, %v", res.Status, err)
	}
	reply.Release()
}

func read(t *testing.T, c *oncrpc.Client, h []byte) (string, nfs3.Nfsstat3) {
	t.Helper()
	res := nfs3.READ3res{Resok: nfs3.READ3resok{Data: make([]byte, 100)}}
	reply, err := c.Call(t.Context(), nfs3.NFSPROC3_READ, auth(t), &nfs3.READ3args{File: nfs3.NfsFh3{Data: h}, Count: 100}, &res)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Release()
	if res.Status != nfs3.NFS3_OK {
		return "", res.Status
	}
	return string(res.Resok.Data), res.Status
}

// TestHandlesSurvive renames a file and restarts the server: the handle that a
// client holds is as good as before, in both kinds of handles.
func TestHandlesSurvive(t *testing.T) {
	t.Parallel()
	for _, handles := range []string{"auto", "map"} {
		t.Run(handles, func(t *testing.T) {
			t.Parallel()
			tree := t.TempDir()
			if err := os.MkdirAll(filepath.Join(tree, "dir"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(tree, "dir", "file"), []byte("still here"), 0o644); err != nil {
				t.Fatal(err)
			}
			conf, random := confOf(tree, t.TempDir()), counter()
			conf.Exports[0].Handles = handles
			u, log, stop := runIn(t, conf, World{Rand: random})
			c := client(t, u)
			root := mount(t, c, "/")
			dir := lookup(t, c, root, "dir")
			file := lookup(t, c, dir, "file")
			rename(t, c, dir, "file", root, "elsewhere")
			hangUp(t, c)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(log.String(), "mounted") {
				t.Errorf("the log says nothing of the mount:\n%s", log)
			}
			u, _, _ = runIn(t, conf, World{Rand: random})
			c = client(t, u)
			if got := mount(t, c, "/"); !bytes.Equal(got, root) {
				t.Errorf("the root's handle was %x and is %x", root, got)
			}
			if got, st := read(t, c, file); st != nfs3.NFS3_OK || got != "still here" {
				t.Errorf("READ by a handle of before: %q, %v", got, st)
			}
		})
	}
}

// TestKeyLost makes all handles stale when the key is gone, and the server says
// so in good order.
func TestKeyLost(t *testing.T) {
	t.Parallel()
	tree, state := t.TempDir(), t.TempDir()
	conf, random := confOf(tree, state), counter()
	u, _, stop := runIn(t, conf, World{Rand: random})
	c := client(t, u)
	root := mount(t, c, "/")
	hangUp(t, c)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	keys, err := filepath.Glob(filepath.Join(state, "*", keyName))
	if err != nil || len(keys) != 1 {
		t.Fatalf("keys %q, %v", keys, err)
	}
	if err := os.Remove(keys[0]); err != nil {
		t.Fatal(err)
	}
	u, _, _ = runIn(t, conf, World{Rand: random})
	if _, st := read(t, client(t, u), root); st != nfs3.NFS3ERR_STALE {
		t.Errorf("READ by a handle of another key: %v", st)
	}
}

func TestServeFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := taken.Close(); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dir, state := t.TempDir(), t.TempDir()
	for what, change := range map[string]func(*config.Config){
		"no directory":           func(c *config.Config) { c.Exports[0].Dir = filepath.Join(dir, "none") },
		"a file":                 func(c *config.Config) { c.Exports[0].Dir = file },
		"an address in use":      func(c *config.Config) { c.Listen = []string{taken.Addr().String()} },
		"no address":             func(c *config.Config) { c.Listen = []string{"nowhere"} },
		"a relative export":      func(c *config.Config) { c.Exports[0].Path = "photos" },
		"unknown handles":        func(c *config.Config) { c.Exports[0].Handles = "magic" },
		"a state that is a file": func(c *config.Config) { c.StateDir = file },
	} {
		c := confOf(dir, state)
		change(&c)
		err := Serve(t.Context(), c, World{Rand: counter()}, func(Running) error {
			t.Errorf("%s: it serves", what)
			return errors.New("stop")
		})
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// TestReadyFails ends the server if its caller cannot go on.
func TestReadyFails(t *testing.T) {
	want := errors.New("stdout is closed")
	if err := Serve(t.Context(), confOf(t.TempDir(), t.TempDir()), World{Rand: counter()}, func(Running) error { return want }); !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}

func TestWarnings(t *testing.T) {
	c := confOf(t.TempDir(), t.TempDir())
	c.Listen, c.Exports[0].Async = []string{"0.0.0.0:0"}, true
	_, log, _ := run(t, c)
	if !strings.Contains(log.String(), "may mount") {
		t.Errorf("nothing is said about an open address:\n%s", log)
	}
	if !strings.Contains(log.String(), "async: clients are told") || !strings.Contains(log.String(), "squash=root") {
		t.Errorf("nothing is said about async, or squash:\n%s", log)
	}
	if squashed := strings.Contains(log.String(), "not running as root"); squashed != (os.Geteuid() != 0) {
		t.Errorf("about not being root:\n%s", log)
	}
}

// TestWarnsOfShortGrace: the log and a check say when the grace may be over before clients notice the restart.
func TestWarnsOfShortGrace(t *testing.T) {
	const said = "grace is short"
	for what, x := range map[string]struct {
		grace time.Duration
		locks bool
		want  bool
	}{
		"the default": {time.Duration(config.Default().Grace), true, false},
		"the least":   {config.LeastGrace, true, false},
		"less":        {config.LeastGrace - time.Second, true, true},
		"none":        {0, true, true},
		"no locks":    {0, false, false},
	} {
		c := confOf(t.TempDir(), t.TempDir())
		c.Grace, c.Locks = config.Duration(x.grace), x.locks
		_, log, _ := run(t, c)
		if strings.Contains(log.String(), said) != x.want {
			t.Errorf("%s: the log says\n%s", what, log)
		}
		checked := &logbuf.Buffer{}
		if err := Check(c, World{Log: checked}); err != nil || strings.Contains(checked.String(), said) != x.want {
			t.Errorf("%s: %v; a check says %q", what, err, checked)
		}
	}
}

// TestWarnsOfClientsAlone: an export that has rules for clients, and no allow, lets nobody
// else in. The log says so, and so does a check; and that a client may only read does not
// make the export read-only.
func TestWarnsOfClientsAlone(t *testing.T) {
	const said = "only those may mount"
	yes := true
	for what, x := range map[string]struct {
		clients []config.Client
		allow   []string
		want    bool
	}{
		"one client":            {[]config.Client{{Match: "127.0.0.1", Rule: config.Rule{ReadOnly: &yes}}}, nil, true},
		"one, and a network":    {[]config.Client{{Match: "127.0.0.1", Rule: config.Rule{ReadOnly: &yes}}}, []string{"10.0.0.0/8"}, false},
		"everybody is a client": {[]config.Client{{Match: "*", Rule: config.Rule{ReadOnly: &yes}}}, nil, false},
		"nothing is said":       {nil, nil, false},
	} {
		c := confOf(t.TempDir(), t.TempDir())
		c.Exports[0].Clients, c.Exports[0].Allow = x.clients, x.allow
		_, log, _ := run(t, c)
		if strings.Contains(log.String(), said) != x.want || !strings.Contains(log.String(), "ro=false") {
			t.Errorf("%s: the log says\n%s", what, log)
		}
		checked := &logbuf.Buffer{}
		if err := Check(c, World{Log: checked}); err != nil || strings.Contains(checked.String(), said) != x.want {
			t.Errorf("%s: %v; a check says %q", what, err, checked)
		}
	}
}

func TestAddress(t *testing.T) {
	for _, x := range []struct {
		ip, path, want string
	}{
		{"127.0.0.1", "/", "nfs://127.0.0.1:2049/"},
		{"0.0.0.0", "/", "nfs://127.0.0.1:2049/"},
		{"::", "/a b", "nfs://127.0.0.1:2049/a%20b"},
		{"::1", "/x", "nfs://[::1]:2049/x"},
	} {
		if got := address(&net.TCPAddr{IP: net.ParseIP(x.ip), Port: 2049}, x.path); got != x.want {
			t.Errorf("%s%s: %s, want %s", x.ip, x.path, got, x.want)
		}
	}
}
