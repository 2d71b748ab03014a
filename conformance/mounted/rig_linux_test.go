package mounted

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/built"
	"github.com/nfsbox/nfsbox/internal/testkit/child"
	"github.com/nfsbox/nfsbox/internal/testkit/expect"
	"github.com/nfsbox/nfsbox/internal/testkit/logbuf"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// The bounds of what is judged. Nothing takes a tenth of them on a quiet machine.
const (
	// patience is how long a process may take to start and to end.
	patience = 3 * time.Minute
	// bound is how long a mount may be judged, and soakBound in a soak. Then it is aborted.
	bound     = 8 * time.Minute
	soakBound = 100 * time.Minute
)

// soak reports whether long tests are long.
func soak() bool { return os.Getenv("NFSBOX_SOAK") != "" }

// often is few on every day, and many in a soak.
func often(few, many int) int {
	if soak() {
		return many
	}
	return few
}

// needed is true once something was built.
var needed atomic.Bool

// builtOnce is what is judged: built once, or what NFSBOX_BINARY names.
var builtOnce = sync.OnceValues(func() (string, error) {
	if built.Given() {
		return built.Into("")
	}
	dir, err := os.MkdirTemp("", "nfsbox-mounted-")
	if err != nil {
		return "", err
	}
	return built.Into(dir)
})

// TestMain removes what was built. A process that is to be an actor (see TestStopped) has no tests.
func TestMain(m *testing.M) {
	if kind := os.Getenv(actorKind); kind != "" {
		os.Exit(act(kind))
	}
	code := m.Run()
	if needed.Load() && !built.Given() {
		if path, err := builtOnce(); err == nil {
			_ = os.RemoveAll(filepath.Dir(path)) // the next run makes its own
		}
	}
	os.Exit(code)
}

// command is the command, and ends the test if this machine cannot mount.
func command(t *testing.T) string {
	t.Helper()
	need.Time(t, "mounts of the built command, from outside")
	need.Fuse(t)
	need.Root(t, "a mount for several users")
	needed.Store(true)
	path, err := builtOnce()
	expect.OK(t, err)
	return path
}

// home is a directory of the test that every user can reach.
func home(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mounted-")
	expect.OK(t, err)
	t.Cleanup(func() {
		if mounted(dir) { // RemoveAll would empty what is served
			t.Errorf("%s: something is still mounted there, and so it is left", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	expect.OK(t, os.Chmod(dir, 0o755))
	return dir
}

// makeDir makes a directory in another.
func makeDir(t *testing.T, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	expect.OK(t, os.MkdirAll(dir, 0o755))
	return dir
}

// mounted reports whether something is mounted at dir or below it.
func mounted(dir string) bool {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 4 && (f[4] == dir || strings.HasPrefix(f[4], dir+"/")) {
			return true
		}
	}
	return false
}

// process is a run of the command that goes on until the test ends.
type process struct {
	cmd   *exec.Cmd
	log   *logbuf.Buffer
	lines *bufio.Reader // its stdout
	ended <-chan struct{}
}

// start starts the command. It is told to end if this process dies.
func start(t *testing.T, bin string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(bin, args...), log: new(logbuf.Buffer)}
	p.cmd.Stderr = p.log
	r, w, err := os.Pipe()
	expect.OK(t, err)
	p.cmd.Stdout, p.lines = w, bufio.NewReader(r)
	p.ended, err = child.Start(p.cmd, syscall.SIGTERM)
	_ = w.Close() // the process has it
	expect.OK(t, err)
	t.Cleanup(func() { _ = r.Close() }) // it was read
	return p
}

// line is the next line of its stdout. A process that has ended has none.
func (p *process) line(t *testing.T) string {
	t.Helper()
	over := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() }) // then its stdout ends
	defer over.Stop()
	text, err := p.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("%v prints nothing: %v\n%s", p.cmd.Args, err, p.log)
	}
	return strings.TrimSpace(text)
}

// end ends it, in good order if it will, and reports whether it did.
func (p *process) end() bool {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
		return true
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.ended
		return false
	}
}

// serve serves dir with the command until the test ends.
func serve(t *testing.T, bin, dir string, flags ...string) (*url.URL, *process) {
	t.Helper()
	state, err := os.MkdirTemp("", "mounted-state-")
	expect.OK(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(state) }) // what the server keeps is of no use
	return serveAt(t, bin, dir, "127.0.0.1:0", state, flags...)
}

// serveAt is serve at an address, with a state that may be that of a server before.
func serveAt(t *testing.T, bin, dir, address, state string, flags ...string) (*url.URL, *process) {
	t.Helper()
	args := []string{"serve", dir, "--listen", address, "--state-dir", state, "--localio-dir", state, "--grace", "0s"}
	p := start(t, bin, append(args, flags...)...)
	t.Cleanup(func() {
		if !p.end() {
			t.Errorf("the server does not end\n%s", p.log)
		}
		if t.Failed() {
			t.Logf("the server says:\n%s", p.log)
		}
	})
	u, err := url.Parse(p.line(t))
	expect.OK(t, err)
	q := u.Query()
	q.Set("localio-dir", state)
	u.RawQuery = q.Encode()
	return u, p
}

// mount is a mounted directory.
type mount struct {
	dir   string
	locks bool // are the server's
	*process
}

// mountAt mounts what spec names at dir until the test ends.
func mountAt(t *testing.T, bin, spec, dir, options string) *mount {
	t.Helper()
	m := &mount{dir: dir}
	m.process = start(t, bin, "mount", "--foreground", "--json", "-o", options, spec, dir)
	limit := bound
	if soak() {
		limit = soakBound
	}
	late := time.AfterFunc(limit, m.abort)
	t.Cleanup(func() {
		defer m.gone(t)
		if !late.Stop() {
			t.Errorf("%s was aborted after %v", dir, limit)
		}
		asked := time.AfterFunc(patience/2, m.abort) // what waits there would keep the process
		defer asked.Stop()
		if !m.end() {
			t.Errorf("the mount does not end\n%s", m.log)
		}
	})
	var event struct {
		Type, Locks string
	}
	expect.OK(t, json.Unmarshal([]byte(m.line(t)), &event))
	if event.Type != "mounted" {
		t.Fatalf("%+v\n%s", event, m.log)
	}
	m.locks = event.Locks == "server"
	return m
}

// abort has whatever waits in the mount fail, and takes the directory away (umount -f -l).
func (m *mount) abort() { _ = unix.Unmount(m.dir, unix.MNT_FORCE|unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) }

// gone checks that nothing has stayed, and takes away what has.
func (m *mount) gone(t *testing.T) {
	if t.Failed() {
		t.Logf("the mount says:\n%s", m.log)
	}
	if !mounted(m.dir) {
		return
	}
	t.Errorf("%s is still mounted", m.dir)
	for range 10 { // several may lie there
		if m.abort(); !mounted(m.dir) {
			return
		}
	}
}

// tool runs a program to its end, and returns what it prints.
func tool(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	out, err := run(dir, name, args...)
	expect.OK(t, err)
	return out
}

func run(dir, name string, args ...string) (string, error) {
	limit := patience
	if soak() {
		limit = soakBound
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.WaitDelay = patience
	cmd.Env = append(os.Environ(), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%.2000s", name, strings.Join(args, " "), errors.Join(err, ctx.Err()), errs.String())
	}
	return string(out), err
}
