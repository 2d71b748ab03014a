package container

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/built"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// patience bounds each wait, and each run of a program. None takes a tenth of it.
const patience = 2 * time.Minute

// host is a test's own world: directories, a network with two addresses, and podman with a
// store of its own. All of it ends with the test.
type host struct {
	*testing.T
	dir       string
	bin       string
	netns     string // the containers' network
	near, far string // the addresses of the host and of the containers
}

func newHost(t *testing.T) *host {
	t.Helper()
	need.Time(t, "containers")
	if os.Geteuid() != 0 {
		need.Missing(t, "podman", "networks and containers of its own take root")
	}
	need.Tool(t, "podman", "podman")
	need.Tool(t, "podman", "ip")
	// Not t.TempDir: a user who is not root shall reach it.
	dir, err := os.MkdirTemp("", "container-")
	if err != nil {
		t.Fatal(err)
	}
	h := &host{T: t, dir: dir}
	t.Cleanup(func() { h.no(os.RemoveAll(dir)) })
	h.no(os.Chmod(dir, 0o755))
	h.furnish()
	h.network()
	h.Cleanup(func() { h.podman("rm", "--all", "--force", "--time", "0") })
	probe := h.podmanCmd("run", "--rm", "--network", "none", "--rootfs", h.path("rootfs"), "/usr/bin/nfsbox", "version")
	if out, err := probe.CombinedOutput(); err != nil {
		need.Missing(t, "podman", fmt.Sprintf("it runs no container here: %v: %s", err, out))
	}
	return h
}

// furnish makes the directories, builds the command into the containers' root, and makes the
// tree that is copied.
func (h *host) furnish() {
	h.Helper()
	for _, dir := range []string{"data", "home", "state", "run", "rootfs/usr/bin", "rootfs/tmp"} {
		h.no(os.MkdirAll(h.path(dir), 0o755))
	}
	h.no(os.Chmod(h.path("state"), 0o700))
	for _, dir := range []string{"data", "home"} {
		h.no(os.Chown(h.path(dir), user, user))
	}
	h.bin = h.path("rootfs", "usr", "bin", "nfsbox")
	bin, err := built.Into(filepath.Dir(h.bin))
	h.no(err)
	if bin != h.bin {
		h.must(exec.Command("cp", bin, h.bin))
	}
	for i := range files {
		dir := h.path("src", fmt.Sprint("d", i%20))
		h.no(os.MkdirAll(dir, 0o755))
		h.no(os.WriteFile(filepath.Join(dir, fmt.Sprint("f", i)), bytes.Repeat([]byte(fmt.Sprintln(i)), 1+i%2000), 0o644))
	}
}

// network makes a network for the containers, and a line to it.
func (h *host) network() {
	h.Helper()
	// Of the block for tests of networks (RFC 2544): two tests at once have different ones.
	id := os.Getpid() % (1 << 14)
	h.netns = fmt.Sprint("nfsbox-", id)
	block, line := fmt.Sprintf("198.18.%d.%d", id>>6, id&63<<2), fmt.Sprint("nfsbox", id)
	prefix := block[:strings.LastIndexByte(block, '.')+1]
	h.near, h.far = prefix+strconv.Itoa(id&63<<2+1), prefix+strconv.Itoa(id&63<<2+2)
	if out, err := exec.Command("ip", "netns", "add", h.netns).CombinedOutput(); err != nil {
		need.Missing(h.T, "podman", fmt.Sprintf("no network of its own: %v: %s", err, out))
	}
	h.Cleanup(func() { h.must(exec.Command("ip", "netns", "del", h.netns)) }) // and the line with it
	for _, args := range [][]string{
		{"link", "add", line, "type", "veth", "peer", "name", "far0", "netns", h.netns},
		{"addr", "add", h.near + "/30", "dev", line},
		{"link", "set", line, "up"},
		{"-n", h.netns, "addr", "add", h.far + "/30", "dev", "far0"},
		{"-n", h.netns, "link", "set", "far0", "up"},
		{"-n", h.netns, "link", "set", "lo", "up"},
	} {
		h.must(exec.Command("ip", args...))
	}
}

// serveArgs are the arguments of a server for both addresses of the network.
func (h *host) serveArgs(data, state, run string) []string {
	return []string{"serve", data, "--listen", ":2049", "--allow", h.near, "--allow", h.far, "--state-dir", state, "--localio-dir", run}
}

// serve starts a server on the host, at its address on the containers' network.
func (h *host) serve() *exec.Cmd {
	h.Helper()
	args := h.serveArgs(h.path("data"), h.path("state"), h.path("run"))
	args[3] = h.near + ":2049" // this host's port may be in use at another address
	cmd := exec.Command(h.bin, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	h.no(cmd.Start())
	h.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill() // the test has failed; it may have ended
			_ = cmd.Wait()
		}
		if h.Failed() {
			h.Logf("the server: %s", said.String())
		}
	})
	return cmd
}

// end ends a server in good order.
func (h *host) end(cmd *exec.Cmd) {
	h.Helper()
	h.no(cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		h.Fatalf("the server's end: %v", err)
	}
}

// podmanCmd is a run of podman, in the test's own store.
func (h *host) podmanCmd(args ...string) *exec.Cmd {
	h.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	h.Cleanup(cancel)
	flags := []string{"--cgroup-manager=cgroupfs", "--storage-driver=vfs", "--root", h.path("store"), "--runroot", h.path("runroot")}
	if _, err := exec.LookPath("runc"); err == nil {
		flags = append(flags, "--runtime=runc")
	}
	if args[0] == "run" {
		// podman's own defaults are higher than what some machines allow.
		args = append([]string{"run", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"}, args[1:]...)
	}
	return exec.CommandContext(ctx, "podman", append(flags, args...)...)
}

// podman runs podman, which must succeed.
func (h *host) podman(args ...string) {
	h.Helper()
	h.must(h.podmanCmd(args...))
}

// must runs cmd, which must succeed.
func (h *host) must(cmd *exec.Cmd) {
	h.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		h.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
}

// pids are the processes that run the test's command with these arguments, in whichever
// container.
func (h *host) pids(args string) (found []int) {
	h.Helper()
	all, err := os.ReadDir("/proc")
	h.no(err)
	for _, entry := range all {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err != nil || !strings.Contains(string(line), "nfsbox\x00"+args) || !strings.Contains(string(line), h.dir) {
			continue // ended meanwhile, or another
		}
		// podman's own processes have these arguments among theirs.
		if argv0, _, _ := strings.Cut(string(line), "\x00"); filepath.Base(argv0) == "nfsbox" {
			found = append(found, pid)
		}
	}
	return found
}

// signal sends sig to processes of the test.
func (h *host) signal(pids []int, sig syscall.Signal) {
	h.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			h.Fatal(err)
		}
	}
}

// path is a path in the test's directory.
func (h *host) path(parts ...string) string {
	return filepath.Join(append([]string{h.dir}, parts...)...)
}

// no ends the test if err is one.
func (h *host) no(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}
