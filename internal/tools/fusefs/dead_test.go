//go:build linux

package fusefs

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/testkit/expect"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// line is the way to a server, which can be held up: nothing is sent then, and nothing arrives.
type line struct {
	mu   sync.Mutex
	free *sync.Cond
	held bool
	hits int // writes that were held up
	all  []*heldConn
}

// heldConn is a connection of a line.
type heldConn struct {
	net.Conn
	line   *line
	closed bool // guarded by line.mu
}

func newLine() *line {
	l := new(line)
	l.free = sync.NewCond(&l.mu)
	return l
}

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	h := &heldConn{Conn: c, line: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, h)
	return h, nil
}

// hold holds the line up, or lets it go.
func (l *line) hold(held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held, l.hits = held, 0
	l.free.Broadcast()
}

// reached reports whether something waits for the server.
func (l *line) reached() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hits > 0
}

// Write drops nothing: it waits until the line is free.
func (c *heldConn) Write(p []byte) (int, error) {
	l := c.line
	l.mu.Lock()
	for l.held && !c.closed {
		l.hits++
		l.free.Wait()
	}
	l.mu.Unlock()
	return c.Conn.Write(p)
}

// Close ends what waits.
func (c *heldConn) Close() error {
	c.line.mu.Lock()
	c.closed = true
	c.line.free.Broadcast()
	c.line.mu.Unlock()
	return c.Conn.Close()
}

// TestDeadServer: processes that wait for a server which does not answer can be killed: readers, writers, and those that close.
// Other mounts go on meanwhile. What they had written is sent when it answers again, and the mount can be used on.
func TestDeadServer(t *testing.T) {
	need.Fuse(t)
	l := newLine()
	served := t.TempDir()
	c := dial(t, serve(t, served), nfsbox.WithHard(), nfsbox.WithDialer(l.dial))
	m, _ := mountClient(t, c, Options{})
	other := mount(t, serveMemory(t), Options{})
	expect.OK(t, os.WriteFile(filepath.Join(other, "there"), nil, 0o666))
	expect.OK(t, os.WriteFile(filepath.Join(served, "old"), bytes.Repeat([]byte("old\n"), 100_000), 0o666))
	// Each is the process that is killed, and no child of it: one that lives on would hold the directory's lock.
	for _, one := range []struct{ name, command string }{
		{"reader", "exec cat old"},
		{"one who lists", "exec ls -l ."},
		{"one who makes", "exec mkdir made"},
		{"writer", "exec dd if=/dev/zero of=stable bs=64k count=4 conv=fsync"},
		{"one who closes", "exec >closed; echo ready >&2; read x; echo written; exec >&-"},
	} {
		t.Run(one.name, func(t *testing.T) {
			cmd := exec.Command("/bin/sh", "-c", "cd '"+m.dir+"' && echo there >&2 && read x && "+one.command)
			in, err := cmd.StdinPipe()
			expect.OK(t, err)
			out, err := cmd.StderrPipe()
			expect.OK(t, err)
			expect.OK(t, cmd.Start())
			await(t, out, "there\n")
			if bytes.Contains([]byte(one.command), []byte("ready")) {
				_, err = in.Write([]byte("go\n"))
				expect.OK(t, err)
				await(t, out, "ready\n")
			}
			l.hold(true)
			defer l.hold(false)
			_, err = in.Write([]byte("go\n"))
			expect.OK(t, err)
			expect.Soon(t, "something waits for the server", l.reached)
			list, err := os.ReadDir(other)
			if err != nil || len(list) != 1 {
				t.Errorf("another mount lists %v, %v", list, err)
			}
			expect.OK(t, cmd.Process.Signal(syscall.SIGKILL))
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = cmd.Wait() // it was killed
			}()
			expect.Soon(t, "its end", func() bool {
				select {
				case <-ended:
					return true
				default:
					return false
				}
			})
		})
	}
	expect.Soon(t, "what was written is at the server", func() bool {
		b, err := os.ReadFile(filepath.Join(served, "closed"))
		return err == nil && string(b) == "written\n"
	})
	expect.Content(t, filepath.Join(m.dir, "closed"), "written\n")
}

// await reads a line that a process has to print.
func await(t *testing.T, r interface{ Read([]byte) (int, error) }, want string) {
	t.Helper()
	got := make([]byte, len(want))
	for n := 0; n < len(got); {
		m, err := r.Read(got[n:])
		n += m
		expect.OK(t, err)
	}
	if string(got) != want {
		t.Fatalf("it says %q", got)
	}
}

// forced is a mount that is unmounted as by umount -f while its server does not answer.
type forced struct {
	*Mount
	line   *line
	client *nfsbox.Client
	served chan struct{} // closed when nobody serves it any more
}

func mountForced(t *testing.T, served string) *forced {
	t.Helper()
	need.Fuse(t)
	need.Root(t, "others start fusermount3, which would close this process' file on the mount as it begins, and wait for the server")
	l := newLine()
	f := &forced{line: l, client: dial(t, serve(t, served), nfsbox.WithHard(), nfsbox.WithDialer(l.dial)), served: make(chan struct{})}
	var err error
	f.Mount, err = New(f.client.FS(), t.TempDir(), Options{Source: "dead", Times: DefaultTimes, AllowOther: os.Geteuid() == 0})
	expect.OK(t, err)
	go func() {
		defer close(f.served)
		f.Serve()
	}()
	expect.OK(t, f.Wait())
	return f
}

// end unmounts though a file is open, and gives up at once what is not stable.
func (f *forced) end(t *testing.T, open *os.File) Unfinished {
	t.Helper()
	expect.OK(t, Unmount(f.dir, false, true))
	<-f.served
	if err := open.Close(); err == nil {
		t.Error("a close succeeds that nobody has answered")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	u := f.Drain(ctx)
	f.line.hold(false)
	if err := f.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		t.Log(err) // it may tell of the bytes, too
	}
	return u
}

// TestUnmountDead: a mount whose server does not answer can be unmounted, and says what was not made stable.
func TestUnmountDead(t *testing.T) {
	m := mountForced(t, t.TempDir())
	f, err := os.Create(filepath.Join(m.dir, "f"))
	expect.OK(t, err)
	_, err = f.WriteString("lost")
	expect.OK(t, err)
	expect.OK(t, os.Rename(f.Name(), filepath.Join(m.dir, "moved")))
	m.line.hold(true)
	u := m.end(t, f)
	if u.Open != 1 || len(u.Errors) == 0 {
		t.Errorf("reported: %+v", u)
	}
	for _, err := range u.Errors {
		if want := filepath.Join(m.dir, "moved") + ": given up before the server"; !strings.HasPrefix(err.Error(), want) {
			t.Errorf("reported: %v, want %s", err, want)
		}
	}
}

// TestUnmountDeadReader: whoever reads has nothing to lose, and is not reported.
func TestUnmountDeadReader(t *testing.T) {
	served := t.TempDir()
	expect.OK(t, os.WriteFile(filepath.Join(served, "f"), bytes.Repeat([]byte("old\n"), 100_000), 0o666))
	m := mountForced(t, served)
	f, err := os.Open(filepath.Join(m.dir, "f"))
	expect.OK(t, err)
	m.line.hold(true)
	read := make(chan error, 1)
	go func() {
		_, err := f.Read(make([]byte, 1))
		read <- err
	}()
	expect.Soon(t, "something waits for the server", m.line.reached)
	if u := m.end(t, f); u.Open != 0 || len(u.Errors) != 0 {
		t.Errorf("reported: %+v", u)
	}
	if <-read == nil {
		t.Error("a read succeeds that nobody has answered")
	}
}
