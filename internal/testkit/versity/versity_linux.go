package versity

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/child"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/testkit/port"
)

// What every server here has.
const (
	Bucket = "bucket"
	Key    = "versity-key"
	Secret = "versity-secret"
)

// Patience bounds how long a server may take to start.
const Patience = 30 * time.Second

// Server is a versitygw with an empty bucket.
type Server struct {
	URL string // http://127.0.0.1:PORT
	Dir string // of the bucket
}

// Start starts a server that is killed when the test ends; flags are further ones, such as --readonly. Without
// versitygw the test ends as need.Missing does.
func Start(t testing.TB, flags ...string) *Server {
	t.Helper()
	bin := find(t)
	home := t.TempDir()
	if why := attributes(home); why != nil {
		need.Missing(t, "s3", "versitygw keeps metadata in extended attributes: "+why.Error())
	}
	s := &Server{Dir: filepath.Join(home, "files", Bucket)}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	address, err := port.Free("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	s.URL = "http://" + address
	log, err := os.Create(filepath.Join(home, "log"))
	if err != nil {
		t.Fatal(err)
	}
	line := append([]string{"--port", address, "--access", Key, "--secret", Secret, "--quiet", "--keep-alive"}, flags...)
	cmd := exec.Command(bin, append(line, "posix", filepath.Join(home, "files"))...)
	cmd.Stdout, cmd.Stderr = log, log
	done, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-done
		_ = log.Close() // nothing is read from it afterwards
	})
	for end := time.Now().Add(Patience); ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close() // it was only to be seen
			return s
		}
		select {
		case <-done:
			end = time.Time{}
		default:
		}
		if time.Now().After(end) {
			text, _ := os.ReadFile(log.Name()) // without it, less is told
			t.Fatalf("versitygw does not start:\n%s", text)
		}
	}
}

// find is the program.
func find(t testing.TB) string {
	t.Helper()
	if bin, err := exec.LookPath("versitygw"); err == nil {
		return bin
	}
	if out, err := exec.Command("go", "env", "GOPATH").Output(); err == nil {
		bin := filepath.Join(strings.TrimSpace(string(out)), "bin", "versitygw")
		if _, err := os.Stat(bin); err == nil {
			return bin
		}
	}
	need.Missing(t, "s3", "no versitygw in PATH or where go install puts it")
	return ""
}

// attributes is why files of a directory have no extended attributes of users.
func attributes(dir string) error {
	name := filepath.Join(dir, "attributes")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		return err
	}
	return syscall.Setxattr(name, "user.nfsbox", []byte("x"), 0)
}
