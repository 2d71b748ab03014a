package natsd

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/child"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/testkit/port"
)

// Patience bounds how long a server may take to start.
const Patience = 30 * time.Second

// Options are what a server is to be. The zero value is one on loopback that lets anybody in.
type Options struct {
	Addr   string   // to listen at; 127.0.0.1
	Within []string // a command, such as ip netns exec NAME, within which it runs
	Plain  bool     // without JetStream
	Config string   // further lines of its configuration
}

// Server is a nats-server with JetStream, whose port and directory outlive its process.
type Server struct {
	Addr string // host:port

	opts Options
	home string
	bin  string
	cmd  *exec.Cmd
	done <-chan struct{} // closed when cmd has ended
}

// Start starts a server that is killed when the test ends. Without nats-server the test ends as
// need.Missing does.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	s := &Server{opts: opts, home: t.TempDir(), bin: need.Tool(t, "nats", "nats-server")}
	if s.opts.Addr == "" {
		s.opts.Addr = "127.0.0.1"
	}
	s.Addr = net.JoinHostPort(s.opts.Addr, "4222") // another network has it free
	if len(opts.Within) == 0 {
		var err error
		if s.Addr, err = port.Free(s.opts.Addr); err != nil {
			t.Fatal(err)
		}
	}
	s.Configure(t, opts.Config)
	t.Cleanup(s.Kill)
	s.Restart(t)
	return s
}

// Configure has the next start of the server read other lines in place of Options.Config.
func (s *Server) Configure(t testing.TB, lines string) {
	t.Helper()
	config := fmt.Sprintf("listen: %q\n%s\n", s.Addr, lines)
	if !s.opts.Plain {
		config += fmt.Sprintf("jetstream { store_dir: %q }\n", s.store())
	}
	if err := os.WriteFile(s.path("conf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
}

// URL is that of the server, for clients of its network.
func (s *Server) URL() string { return "nats://" + s.Addr }

func (s *Server) path(name string) string { return filepath.Join(s.home, name) }
func (s *Server) store() string           { return s.path("store") }

// Kill kills the server, as SIGKILL does. What it has on disk stays. A server that has ended is left alone.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may be gone already
	<-s.done
	s.cmd = nil
}

// Forget kills the server and deletes its files.
func (s *Server) Forget(t testing.TB) {
	t.Helper()
	s.Kill()
	if err := os.RemoveAll(s.store()); err != nil {
		t.Fatal(err)
	}
}

// Restart starts the server that was killed, and returns when clients may come.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Kill()
	out, err := os.Create(s.path("log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	line := append(append([]string{}, s.opts.Within...), s.bin, "-c", s.path("conf"))
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	done, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	s.cmd, s.done = cmd, done
	for end := time.Now().Add(Patience); time.Now().Before(end); {
		log, err := os.ReadFile(s.path("log"))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(log, []byte("Server is ready")) {
			return
		}
		select {
		case <-done:
			t.Fatalf("nats-server has ended:\n%s", log)
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatal("nats-server does not start")
}
