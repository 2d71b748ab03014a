package container

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// user is who copies. It is not root, to whom the server gives no descriptors of files that
// it squashes.
const user = 1000

// files is the number of files in the tree that is copied: enough that the copy still goes on
// when its first file is seen.
const files = 4000

// TestServerInContainer: a server in a container, and its client on the host.
func TestServerInContainer(t *testing.T) {
	h := newHost(t)
	argv := append([]string{"/usr/bin/nfsbox"}, h.serveArgs("/data", "/state", "/run/nfsbox")...)
	h.podman(append([]string{
		"run", "--detach", "--name", "server", "--network", "ns:/run/netns/" + h.netns,
		"--cap-add", "DAC_READ_SEARCH", "--volume", h.path("data") + ":/data", "--volume", h.path("state") + ":/state",
		"--volume", h.path("run") + ":/run/nfsbox", "--rootfs", h.path("rootfs"),
	}, argv...)...)
	h.prove(h.far, func(args ...string) *exec.Cmd {
		cmd := exec.Command(h.bin, args...)
		cmd.Env = append(os.Environ(), "HOME="+h.path("home"), "XDG_STATE_HOME="+h.path("home"))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		return cmd
	}, h.path("run"), func() {
		h.podman("stop", "--time", "20", "server")
		h.podman("start", "server")
	})
}

// TestClientInContainer: a client in a container, and its server on the host. The container
// sees the directory of the socket, and cannot write to it.
func TestClientInContainer(t *testing.T) {
	h := newHost(t)
	server := h.serve()
	h.prove(h.near, func(args ...string) *exec.Cmd {
		return h.podmanCmd(append([]string{
			"run", "--rm", "--user", fmt.Sprintf("%d:%d", user, user), "--network", "ns:/run/netns/" + h.netns,
			"--env", "HOME=/home", "--volume", h.path("home") + ":/home",
			"--volume", h.path("src") + ":" + h.path("src") + ":ro", "--volume", h.path("run") + ":/run/nfsbox:ro",
			"--rootfs", h.path("rootfs"), "/usr/bin/nfsbox",
		}, args...)...)
	}, "/run/nfsbox", func() {
		h.end(server)
		server = h.serve()
	})
}

// prove copies a tree to the server at this address by the client that run makes, with the
// server's socket in dir. It halts the copy when it has begun, and restarts the server.
func (h *host) prove(address string, run func(args ...string) *exec.Cmd, dir string, restart func()) {
	h.Helper()
	url := "nfs://" + address + "/"
	local := []string{"--localio=require", "--localio-dir", dir}
	h.until("the server answers", func() bool { return run("ls", url).Run() == nil })
	h.must(run(append([]string{"cp", h.path("src", "d0", "f0"), url + "before"}, local...)...))

	copying := run("cp", "-r", "--verify", "--localio-dir", dir, h.path("src"), url+"copy")
	var said bytes.Buffer
	copying.Stdout, copying.Stderr = &said, &said
	h.no(copying.Start())
	h.until("the copy has begun", func() bool { return count(h.path("data", "copy")) > 0 })
	halted := h.pids("cp\x00-r\x00--verify")
	if len(halted) == 0 {
		h.Fatalf("the copy had ended before it was halted: more files are needed\n%s", said.String())
	}
	h.signal(halted, syscall.SIGSTOP)
	done := count(h.path("data", "copy"))
	restart()
	h.signal(halted, syscall.SIGCONT)
	if err := copying.Wait(); err != nil {
		h.Fatalf("the copy over a restart of the server: %v\n%s", err, said.String())
	}
	if done >= files {
		h.Errorf("all %d files were there when the server was stopped", done)
	}
	h.same(h.path("src"), h.path("data", "copy"))
	h.must(run(append([]string{"verify", h.path("src"), url + "copy"}, local...)...))
	h.must(run(append([]string{"cp", h.path("src", "d0", "f0"), url + "after"}, local...)...))
}

// same fails unless both trees have the same files.
func (h *host) same(a, b string) {
	h.Helper()
	want, got := sums(h.T, a), sums(h.T, b)
	for name, sum := range want {
		if got[name] != sum {
			h.Errorf("%s is not the same in the copy", name)
		}
	}
	if len(got) != len(want) || len(want) != files {
		h.Errorf("%d files became %d, want %d", len(want), len(got), files)
	}
}

// sums are the checksums of all files below dir, by their paths in it.
func sums(t *testing.T, dir string) map[string][sha256.Size]byte {
	t.Helper()
	all := make(map[string][sha256.Size]byte)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir)] = sha256.Sum256(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// count is the number of files below dir, in which files may come and go.
func count(dir string) (n int) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return nil
	})
	return n
}

// until asks ok again and again, until it says yes.
func (h *host) until(what string, ok func() bool) {
	h.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			h.Fatalf("%s: not within %v", what, patience)
		}
	}
}
