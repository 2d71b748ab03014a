package session

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/proto/localio"
)

var testUUID = [localio.UUID_SIZE]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

// other is a user and a group that are not the test's.
const other = 12345

func TestMain(m *testing.M) {
	if do := os.Getenv("SESSION_TEST_CHILD"); do != "" {
		child(do, os.Getenv("SESSION_TEST_DIR"))
		return
	}
	os.Exit(m.Run())
}

// child is the other process of a test: it listens or connects in dir, says so
// and stays until its standard input ends.
func child(do, dir string) {
	var err error
	switch do {
	case "listen":
		_, err = Listen(dir, testUUID)
	case "connect":
		var c *Conn
		if c, err = Connect(context.Background(), dir, testUUID); err == nil {
			err = c.Send(hello())
		}
	}
	fmt.Println("child:", err)
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// asOther runs a child as another user, with one further group. It needs root.
func asOther(t *testing.T, do, dir string) {
	t.Helper()
	need.Root(t, "to be another user takes root")
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "SESSION_TEST_CHILD="+do, "SESSION_TEST_DIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: other, Gid: other, Groups: []uint32{other + 1}}}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stdin.Close(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	said := make([]byte, 100)
	n, err := stdout.Read(said)
	if err != nil || string(said[:n]) != "child: <nil>\n" {
		t.Fatalf("the child said %q, %v", said[:n], err)
	}
}

// fds are the open descriptors of this process, but those of the runtime.
func fds(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || strings.HasPrefix(to, "anon_inode:[event") {
			continue // that of the listing itself is closed by now
		}
		open = append(open, e.Name()+" "+to)
	}
	return open
}

// noneLeft looks for descriptors left open when everything else is cleaned up.
func noneLeft(t testing.TB) {
	t.Helper()
	before := fds(t)
	t.Cleanup(func() {
		if after := fds(t); !slices.Equal(before, after) {
			t.Errorf("descriptors before: %v\nafter: %v", before, after)
		}
	})
}

// runtimeDir is a directory for sockets, whatever the umask.
func runtimeDir(t testing.TB) string {
	t.Helper()
	d := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(d, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(d, 0o755); err != nil {
		t.Fatal(err)
	}
	return d
}

func listen(t testing.TB, dir string, uuid [localio.UUID_SIZE]byte) *Listener {
	t.Helper()
	l, err := Listen(dir, uuid)
	if err != nil {
		t.Fatal(err)
	}
	closes(t, l)
	return l
}

func connect(t testing.TB, dir string, uuid [localio.UUID_SIZE]byte) *Conn {
	t.Helper()
	c, err := Connect(t.Context(), dir, uuid)
	if err != nil {
		t.Fatal(err)
	}
	closes(t, c)
	return c
}

func closes(t testing.TB, c interface{ Close() error }) {
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// ends are both ends of a session.
func ends(t testing.TB) (client, server *Conn) {
	t.Helper()
	dir := runtimeDir(t)
	l := listen(t, dir, testUUID)
	client = connect(t, dir, testUUID)
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	closes(t, server)
	return client, server
}

// raw is one end of a session, and the bare socket of a hostile other.
func raw(t testing.TB, server bool) (*Conn, *net.UnixConn) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	var conns [2]*net.UnixConn
	for i, fd := range pair {
		f := os.NewFile(uintptr(fd), "socket")
		c, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		conns[i] = c.(*net.UnixConn)
	}
	c, err := newConn(conns[0], server)
	if err != nil {
		t.Fatal(err)
	}
	return c, conns[1]
}

func hello() *localio.SessionMessage {
	return &localio.SessionMessage{Type: localio.SESSION_HELLO, Hello: localio.SessionHello{Speaks: 1, UserNs: 7}}
}

func bound(b byte) *localio.SessionMessage {
	return &localio.SessionMessage{Type: localio.SESSION_BOUND, Bound: localio.SessionBound{Nonce: [16]byte{b}}}
}

// opened tells of n files, in slots from 1 up.
func opened(n int) *localio.SessionMessage {
	m := &localio.SessionMessage{Type: localio.SESSION_OPENED}
	for i := range n {
		m.Opened.Files = append(m.Opened.Files, localio.SessionOpenedFile{Id: uint32(i), Slot: uint32(i) + 1, Generation: 1})
	}
	return m
}

// temps are the descriptors of n files; file i holds the byte i.
func temps(t testing.TB, n int) []int {
	t.Helper()
	var open []int
	for i := range n {
		f, err := os.Create(filepath.Join(t.TempDir(), fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		closes(t, f)
		if _, err := f.Write([]byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
		open = append(open, int(f.Fd()))
	}
	return open
}
