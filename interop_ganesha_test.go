//go:build linux

package nfsbox_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/need"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// ganeshaConfig is for nfs-ganesha with one export, %[1]s, and NFS and MOUNT at
// the ports %[2]d and %[3]d of the loopback.
const ganeshaConfig = `
NFS_CORE_PARAM { NFS_Port = %[2]d; MNT_Port = %[3]d; Bind_addr = 127.0.0.1;
	Protocols = 3; Enable_NLM = false; Enable_RQUOTA = false;
	Enable_UDP = false; mount_path_pseudo = false; }
NFSV4 { Graceless = true; }
NFS_KRB5 { Active_krb5 = false; }
EXPORT { Export_Id = 1; Path = %[1]s; Pseudo = /export;
	Protocols = 3; Transports = TCP; SecType = sys;
	Squash = No_Root_Squash; Access_Type = RW; PrivilegedPort = false;
	Attr_Expiration_Time = 0; FSAL { Name = VFS; } }
LOG { Default_Log_Level = EVENT; }
`

// patience bounds how long the processes may take to start and to end.
const patience = 20 * time.Second

// ganesha starts a private nfs-ganesha until the test ends, and returns the
// directory that it exports and its URL. It wants an rpcbind, which gets a
// network namespace of its own and is reached by a socket in a mount namespace
// of its own, so that nothing outside is touched.
func ganesha(t *testing.T) (dir, url string) {
	t.Helper()
	for _, tool := range []string{"ganesha.nfsd", "rpcbind", "unshare", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			need.Missing(t, "ganesha", fmt.Sprintf("%v (Debian: nfs-ganesha nfs-ganesha-vfs rpcbind)", err))
		}
	}
	if os.Geteuid() != 0 {
		need.Missing(t, "ganesha", "it runs as root only")
	}
	home := t.TempDir()
	dir = filepath.Join(home, "export")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	nfs, mount := freePort(t), freePort(t)
	config := fmt.Sprintf(ganeshaConfig, dir, nfs, mount)
	if err := os.WriteFile(filepath.Join(home, "conf"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	// The two share a mount namespace with a /run of its own, and so the socket;
	// rpcbind alone is in another network.
	const script = `
		mount -t tmpfs tmpfs /run && mkdir -p /run/ganesha /run/rpcbind || exit 1
		mount -t tmpfs tmpfs /var/lib/nfs && mkdir -p /var/lib/nfs/ganesha || exit 1
		unshare -n sh -c 'ip link set lo up; exec rpcbind -f -w' &
		rpcbind=$!
		trap 'kill $ganesha $rpcbind; wait' TERM
		for i in $(seq 100); do [ -S /run/rpcbind.sock ] && break; sleep 0.1; done
		ganesha.nfsd -F -L "$1/log" -f "$1/conf" -p "$1/pid" &
		ganesha=$!
		wait $ganesha
		kill $rpcbind; wait`
	run(t, exec.Command("unshare", "-m", "sh", "-c", script, "ganesha", home), home)
	return dir, fmt.Sprintf("nfs://127.0.0.1%s?nfsport=%d&mountport=%d", dir, nfs, mount)
}

// run starts the processes, waits until the log says that they serve, and ends
// them with the test.
func run(t *testing.T, cmd *exec.Cmd, home string) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	cmd.WaitDelay = patience
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it ends by a signal
		close(done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
		select {
		case <-done:
		case <-time.After(patience):
			t.Error("nfs-ganesha does not end")
			_ = cmd.Process.Kill()
		}
	})
	log := filepath.Join(home, "log")
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		b, err := os.ReadFile(log)
		if err == nil && strings.Contains(string(b), "NFS SERVER INITIALIZED") {
			return
		}
		select {
		case <-done:
			t.Fatalf("nfs-ganesha ended:\n%s\n%s", b, out.Bytes())
		case <-time.After(50 * time.Millisecond):
		}
	}
	b, _ := os.ReadFile(log) // for the message alone
	t.Fatalf("nfs-ganesha does not start:\n%s", b)
}

// freePort is a TCP port that was free a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return port
}

// badType is ganesha's answer wherever an object is not of the type that the
// operation wants.
const badType = "ganesha answers BADTYPE, which RFC 1813 has for MKNOD alone"

// noLists is what becomes of the protocol of access control lists.
const noLists = "ganesha 4.3 answers GETACL with empty lists, or with less than a result, and decodes no SETACL"

// ganeshaDifferences are what nfs-ganesha does in its own way.
var ganeshaDifferences = map[string]string{
	"setattr/size-of-directory":        badType,
	"create/unchecked-over-others":     badType,
	"link/of-directory":                badType,
	"create/unchecked-sets-other-size": "ganesha obeys the size of an unchecked CREATE over a file only if it is 0",
	"concurrent/create-and-list":       "ganesha 4.3 at times lists a file twice, or answers NOENT, if names come and go meanwhile",

	"acl/of-mode":          noLists,
	"acl/set":              noLists,
	"acl/mask-is-added":    noLists,
	"acl/mode-follows":     noLists,
	"acl/chmod-moves-mask": noLists,
	"acl/minimal":          noLists,
	"acl/default":          noLists,
	"acl/inherited":        noLists,
	"acl/no-list":          noLists,
	"acl/unknown-rights":   noLists,
	"acl/no-directory":     noLists,
	"acl/stale":            noLists,
	"acl/grants":           noLists,
	"acl/owner-only":       noLists,
	"acl/cancelled":        noLists,
}

// TestInteropGanesha runs the suite against nfs-ganesha.
func TestInteropGanesha(t *testing.T) {
	t.Parallel() // it waits for the disk
	dir, url := ganesha(t)
	n := 0
	vfstest.Run(t, vfstest.Config{
		Callers:     true,
		Differences: ganeshaDifferences,
		New: func(t *testing.T) vfs.FS {
			n++
			name := fmt.Sprintf("suite%d", n)
			if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
			return dial(t, strings.Replace(url, "?", "/"+name+"?", 1)).FS()
		},
	})
}

// TestInteropGaneshaData moves some data both ways, past the suite: what is
// written here is on the disk there.
func TestInteropGaneshaData(t *testing.T) {
	dir, url := ganesha(t)
	c := dial(t, url)
	data := bytes.Repeat([]byte("nfsbox and ganesha "), 400_000)
	put(t, c.FS(), "a/b/data", data)
	got, err := os.ReadFile(filepath.Join(dir, "a/b/data"))
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if got := get(t, c.FS(), "a/b/data"); !bytes.Equal(got, data) {
		t.Errorf("read back %d bytes, and not those that were written", len(got))
	}
	// The export's path ends somewhere in the URL's.
	deep := dial(t, strings.Replace(url, "?", "/a/b/data?", 1))
	if deep.Target() != "data" {
		t.Errorf("target %q", deep.Target())
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	exports, err := nfsbox.Exports(ctx, url)
	if err != nil || len(exports) != 1 || exports[0].Path != dir {
		t.Errorf("%+v, %v", exports, err)
	}
}
