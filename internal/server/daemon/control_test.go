package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/daemon/ops"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nlm4"
)

// lock locks the first ten bytes of a file.
func lock(t *testing.T, c *oncrpc.Client, h []byte) {
	t.Helper()
	args := nlm4.Nlm4Lockargs{Cookie: []byte("c"), Exclusive: true, State: 1,
		Alock: nlm4.Nlm4Lock{CallerName: []byte("host"), Fh: h, Oh: []byte("owner"), Svid: 7, LLen: 10}}
	var res nlm4.Nlm4Res
	reply, err := c.Call(t.Context(), nlm4.NLMPROC4_LOCK, auth(t), &args, &res)
	if err != nil || res.Stat.Stat != nlm4.NLM4_GRANTED {
		t.Fatalf("LOCK: %v, %v", res.Stat, err)
	}
	reply.Release()
}

// folderOf is the only folder in a state directory.
func folderOf(t *testing.T, state string) string {
	t.Helper()
	all, err := os.ReadDir(state)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d folders, %v", len(all), err)
	}
	return filepath.Join(state, all[0].Name())
}

// TestControl lists a client with its lock, and drops it: its lock is gone.
func TestControl(t *testing.T) {
	tree, state := treeOf(t), t.TempDir()
	conf := confOf(tree, state)
	u, log, stop := run(t, conf)
	c := client(t, u)
	lock(t, c, lookup(t, c, mount(t, c, "/"), "file"))

	a, err := ops.Control(t.Context(), state, ops.ControlClients, "")
	if err != nil || len(a.Clients) != 1 {
		t.Fatalf("clients: %+v, %v", a, err)
	}
	if x := a.Clients[0]; x.Client != "127.0.0.1" || x.Connections != 1 || x.Calls < 3 || x.BytesIn == 0 || x.BytesOut == 0 || x.Locks != 1 || x.Since == nil {
		t.Errorf("clients: %+v", x)
	}
	a, err = ops.Control(t.Context(), state, ops.ControlStatus, "")
	if err != nil || a.Status == nil || !a.Status.Healthy || a.Status.URL != u || len(a.Status.Clients) != 1 || a.Status.Total.Calls < 3 || len(a.Status.Points) > 0 {
		t.Fatalf("status: %+v, %v", a, err)
	}
	a, err = ops.Control(t.Context(), state, ops.ControlLocks, "127.0.0.1")
	if err != nil || len(a.Locks) != 1 {
		t.Fatalf("locks: %+v, %v", a, err)
	}
	if x := a.Locks[0]; x.Name != "host" || x.Process != 7 || x.Length != 10 || !x.Exclusive || x.FileID == 0 {
		t.Errorf("locks: %+v", x)
	}
	if _, err = ops.Control(t.Context(), state, ops.ControlDrop, "192.0.2.1"); !errors.Is(err, ops.ErrNoClient) {
		t.Errorf("drop of nobody: %v", err)
	}
	if _, err = ops.Control(t.Context(), state, ops.ControlDrop, "127.0.0.1"); err != nil {
		t.Errorf("drop: %v", err)
	}
	if a, err := ops.Control(t.Context(), state, ops.ControlLocks, ""); err != nil || len(a.Locks) != 0 {
		t.Errorf("locks of who was dropped: %+v, %v", a, err)
	}
	if !strings.Contains(log.String(), "dropped by the operator") {
		t.Error("the log says nothing")
	}

	socket := filepath.Join(folderOf(t, state), "control")
	info, err := os.Stat(socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is there after the end: %v", err)
	}
	if _, err := ops.Control(t.Context(), state, ops.ControlClients, ""); !errors.Is(err, ops.ErrNoServer) {
		t.Errorf("no server: %v", err)
	}
}

// treeOf is a tree with a file.
func treeOf(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestControlOfSeveral names the servers that share a state directory, and asks the
// one whose folder is named.
func TestControlOfSeveral(t *testing.T) {
	state := t.TempDir()
	_, _, stop := run(t, confOf(treeOf(t), state))
	one := folderOf(t, state)
	u, _, _ := run(t, confOf(treeOf(t), state))
	_, err := ops.Control(t.Context(), state, ops.ControlClients, "")
	if !errors.Is(err, ops.ErrNoServer) || !strings.Contains(err.Error(), u) || !strings.Contains(err.Error(), "--state-dir "+one) {
		t.Errorf("two servers: %v", err)
	}
	if _, err := ops.Control(t.Context(), one, ops.ControlClients, ""); err != nil {
		t.Errorf("one of two: %v", err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if a, err := ops.Control(t.Context(), state, ops.ControlServer, ""); err != nil || a.Server.URL != u || a.Server.PID != os.Getpid() {
		t.Errorf("the one that is left: %+v, %v", a, err)
	}
	if _, err := ops.Control(t.Context(), filepath.Join(state, "none"), ops.ControlClients, ""); !errors.Is(err, ops.ErrNoServer) {
		t.Errorf("no such directory: %v", err)
	}
}

// TestControlHostile answers what is no request with an error, or not at all, and a
// socket that a killed server has left is replaced; what is no socket stays.
func TestControlHostile(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("sockets by a short name")
	}
	state, tree := t.TempDir(), treeOf(t)
	_, _, stop := run(t, confOf(tree, state))
	socket := filepath.Join(folderOf(t, state), "control")
	t.Chdir(filepath.Dir(socket)) // however long its path is
	say := func(text string) (string, error) {
		nc, err := net.Dial("unix", "control")
		if err != nil {
			return "", err
		}
		defer func() { _ = nc.Close() }()
		if _, err := io.WriteString(nc, text); err != nil {
			return "", err
		}
		b, err := io.ReadAll(nc)
		var a ops.ControlAnswer
		if err == nil && len(b) > 0 {
			err = json.Unmarshal(b, &a)
		}
		return a.Error, err
	}
	for text, want := range map[string]string{
		"GET / HTTP/1.1\r\n\r\n":                       "not a request",
		"{}\n":                                         "form 0",
		`{"version":2,"do":"clients"}` + "\n":          "form 2",
		`{"version":1,"do":"reboot"}` + "\n":           "no such request",
		`{"version":1,"do":"drop"}` + "\n":             "whom?",
		`{"version":1,"do":"clients","more":1}` + "\n": "not a request",
		strings.Repeat("x", 4<<10+1) + "\n":            "",
	} {
		got, err := say(text)
		if want == "" && err != nil {
			continue // cut off while it was still being sent
		}
		if err != nil || !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%.40q: %q, %v", text, got, err)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", "control")
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, stop = run(t, confOf(tree, state))
	if _, err := ops.Control(context.Background(), state, ops.ControlClients, ""); err != nil {
		t.Errorf("after a server that was killed: %v", err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(socket, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, log, stop := run(t, confOf(tree, state))
	if !strings.Contains(log.String(), "ctl cannot reach") {
		t.Error("nothing is said of a file in the socket's place")
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(socket); string(b) != "mine" {
		t.Errorf("the file in the socket's place: %q, %v", b, err)
	}
}
