//go:build linux

package outsider

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// patience bounds each run of the command. None takes a tenth of it.
	patience = 2 * time.Minute
	// soakPatience bounds each run of the command at trees of a million files.
	soakPatience = time.Hour
)

// soak reports whether long tests are long. NFSBOX_SOAK_FILES=n gives their trees n files.
func soak() bool { return os.Getenv("NFSBOX_SOAK") != "" }

// soakFiles is how many files a long test's tree has: few on every day, many in a soak.
func (b *box) soakFiles(few, many int) int {
	b.Helper()
	if !soak() {
		return few
	}
	if text := os.Getenv("NFSBOX_SOAK_FILES"); text != "" {
		n, err := strconv.Atoi(text)
		b.no(err)
		return n
	}
	return many
}

// built is the command that is tried: built once, or what NFSBOX_BINARY names.
var built = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("NFSBOX_BINARY"); path != "" {
		return filepath.Abs(path)
	}
	dir, err := os.MkdirTemp("", "nfsbox-outsider-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // other users run it, too
		return "", err
	}
	path := filepath.Join(dir, "nfsbox")
	build := exec.Command("go", "build", "-o", path, "github.com/nfsbox/nfsbox/cmd/nfsbox")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// TestMain removes what was built.
func TestMain(m *testing.M) {
	code := m.Run()
	if testing.Short() {
		os.Exit(code) // nothing was built
	}
	if path, err := built(); err == nil && os.Getenv("NFSBOX_BINARY") == "" {
		if err := os.RemoveAll(filepath.Dir(path)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// box is a test's own world: a directory, a home, processes that end with it.
type box struct {
	*testing.T
	dir  string
	bin  string
	long bool // runs of the command take as long as they like, within soakPatience
}

// newBox makes a test's box. The test runs beside others from here on: most of them wait, for signals and for time limits.
func newBox(t *testing.T) *box {
	t.Helper()
	t.Parallel()
	return newBoxAlone(t)
}

// newBoxAlone makes the box of a test that measures, and beside which nothing else may run; or one of several boxes of a
// test, which has called t.Parallel itself.
func newBoxAlone(t *testing.T) *box {
	t.Helper()
	if testing.Short() {
		t.Skip("NOT TESTED, -short leaves it out: the built command, from outside")
	}
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: a user who is not root shall reach it.
	dir, err := os.MkdirTemp("", "outsider-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return &box{T: t, dir: dir, bin: bin}
}

// path is a path in the box.
func (b *box) path(parts ...string) string {
	return filepath.Join(append([]string{b.dir}, parts...)...)
}

// no ends the test if err is one.
func (b *box) no(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// result is what a run of the command came to.
type result struct {
	status         int
	stdout, stderr string
	took           time.Duration
}

// summary is the last event of a run with --json.
func (r *result) summary(b *box) map[string]any {
	b.Helper()
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	var event map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &event); err != nil || event["type"] != "summary" {
		b.Fatalf("no summary at the end of the output: %v\n%s\n%s", err, r.stdout, r.stderr)
	}
	return event
}

// count is a number of the summary; one that is not there is 0.
func (r *result) count(b *box, field string) int {
	b.Helper()
	n, _ := r.summary(b)[field].(float64)
	return int(n)
}

// command is a run of the command that has not begun. It has a home, and a
// state directory, in the box.
func (b *box) command(args ...string) *exec.Cmd {
	bound := patience
	if b.long {
		bound = soakPatience
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	b.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, b.bin, args...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "HOME="+b.dir, "XDG_STATE_HOME="+b.path(".state"), "XDG_RUNTIME_DIR="+b.dir)
	return cmd
}

// run runs the command to its end.
func (b *box) run(args ...string) *result {
	b.Helper()
	return b.finish(b.command(args...))
}

// finish runs cmd to its end.
func (b *box) finish(cmd *exec.Cmd) *result {
	b.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	start := time.Now()
	err := cmd.Run()
	r := &result{stdout: out.String(), stderr: errs.String(), took: time.Since(start)}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		r.status = exit.ExitCode()
	case err != nil:
		b.Fatalf("%v: %v", cmd.Args, err)
	}
	if r.status < 0 {
		b.Fatalf("%v: %v after %v\n%s%s", cmd.Args[1:], err, r.took, r.stdout, r.stderr)
	}
	return r
}

// must runs the command, which has to end with this status.
func (b *box) must(status int, args ...string) *result {
	b.Helper()
	r := b.run(args...)
	if r.status != status {
		b.Fatalf("nfsbox %s: exit status %d, want %d\n%s%s", strings.Join(args, " "), r.status, status, r.stdout, r.stderr)
	}
	return r
}

// server is a running nfsbox serve.
type server struct {
	b     *box
	cmd   *exec.Cmd
	url   string // ends in "/"
	port  int
	log   *log
	state string
	ended chan struct{} // closed when it is no more
	err   error         // of its end; read after that
}

// log is what a server has said.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// serve serves dir on a free port of loopback until the test ends. LOCALIO is off
// unless flags say more: what is tried is the network.
func (b *box) serve(dir string, flags ...string) *server {
	b.Helper()
	return b.serveAt(0, dir, flags...)
}

// serveAt is serve at a port; that of b.port, where the server is begun again.
func (b *box) serveAt(port int, dir string, flags ...string) *server {
	b.Helper()
	state, err := os.MkdirTemp(b.dir, ".served-")
	b.no(err)
	return b.serveWith(state, fmt.Sprint("127.0.0.1:", port), append([]string{dir, "--localio=off"}, flags...)...)
}

// port is one of loopback that nobody has, of those that Linux does not give out (ip(7)): others do not get it before
// the server that it is for has it, or while that is begun again.
func (b *box) port() int {
	b.Helper()
	for {
		port := 20_000 + rand.IntN(12_000)
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			b.no(l.Close())
			return port
		}
	}
}

// serveWith serves with this state directory and address.
func (b *box) serveWith(state, listen string, args ...string) *server {
	b.Helper()
	argv := append([]string{"serve", "--listen", listen, "--state-dir", state}, args...)
	return b.start(exec.Command(b.bin, argv...), state)
}

// start starts cmd, a server with this state directory.
func (b *box) start(cmd *exec.Cmd, state string) *server {
	b.Helper()
	s := &server{b: b, cmd: cmd, log: new(log), state: state, ended: make(chan struct{})}
	s.cmd.Env = append(os.Environ(), "HOME="+b.dir, "XDG_RUNTIME_DIR="+b.dir)
	s.cmd.Stderr = s.log
	stdout, err := s.cmd.StdoutPipe()
	b.no(err)
	b.no(s.cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	go func() {
		defer close(s.ended)
		_, _ = io.Copy(io.Discard, stdout) // ends with the process
		s.err = s.cmd.Wait()
	}()
	b.Cleanup(s.kill)
	if err != nil {
		<-s.ended
		b.Fatalf("the server did not start: %v\n%s", s.err, s.log)
	}
	s.url = strings.TrimSuffix(strings.TrimSpace(line), "/") + "/"
	u, err := url.Parse(s.url)
	b.no(err)
	s.port, err = strconv.Atoi(u.Port())
	b.no(err)
	return s
}

// kill ends the server at once, if it still runs.
func (s *server) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.ended
}

// stop ends the server in good order.
func (s *server) stop() {
	s.b.Helper()
	s.b.no(s.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.b.Fatalf("the server does not end\n%s", s.log)
	}
}

// signal sends sig.
func (s *server) signal(sig os.Signal) {
	s.b.Helper()
	s.b.no(s.cmd.Process.Signal(sig))
}

// resident is the server's memory in bytes.
func (s *server) resident() int64 {
	s.b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.cmd.Process.Pid))
	s.b.no(err)
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	s.b.no(err)
	return pages * int64(os.Getpagesize())
}

// descriptors is how many files and sockets the server has open.
func (s *server) descriptors() int {
	s.b.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	s.b.no(err)
	return len(list)
}

// until asks ok again and again, until it says yes.
func (b *box) until(what string, ok func() bool) {
	b.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// root skips the test, or fails where that is demanded, unless root runs it.
func root(t *testing.T, why string) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if strings.Contains(","+os.Getenv("NFSBOX_REQUIRE")+",", ",root,") {
		t.Fatalf("NFSBOX_REQUIRE names root: %s", why)
	}
	t.Skipf("NOT TESTED without root: %s", why)
}

// mount mounts until the test ends. What the kernel does not have skips the test.
func (b *box) mount(source, target, kind, data string) {
	b.Helper()
	b.no(os.MkdirAll(target, 0o755))
	var flags uintptr
	if kind == "bind" {
		flags, kind = syscall.MS_BIND, ""
		if info, err := os.Stat(source); err == nil && !info.IsDir() {
			b.no(os.Remove(target))
			b.no(os.WriteFile(target, nil, 0o644))
		}
	}
	if err := syscall.Mount(source, target, kind, flags, data); err != nil {
		b.Skipf("NOT TESTED: this machine mounts no %s: %v", kind, err)
	}
	b.Cleanup(func() {
		if err := syscall.Unmount(target, syscall.MNT_DETACH); err != nil {
			b.Error(err)
		}
	})
}
