//go:build linux

package nfsserver_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/need"
	"github.com/nfsbox/nfsbox/internal/v3suite"
)

// ganeshaConfig is for nfs-ganesha: directories main, ro and other of %[1]s, NFS
// and MOUNT at the ports %[2]d and %[3]d of the loopback.
const ganeshaConfig = `
NFS_CORE_PARAM { NFS_Port = %[2]d; MNT_Port = %[3]d; Bind_addr = 127.0.0.1;
	Protocols = 3; Enable_NLM = false; Enable_RQUOTA = false;
	Enable_UDP = false; mount_path_pseudo = false; }
NFSV4 { Graceless = true; }
NFS_KRB5 { Active_krb5 = false; }
EXPORT_DEFAULTS { Protocols = 3; Transports = TCP; SecType = sys;
	Squash = No_Root_Squash; PrivilegedPort = false; Attr_Expiration_Time = 0; }
EXPORT { Export_Id = 1; Path = %[1]s/main; Pseudo = /main; Access_Type = RW; FSAL { Name = VFS; } }
EXPORT { Export_Id = 2; Path = %[1]s/ro; Pseudo = /ro; Access_Type = RO; FSAL { Name = VFS; } }
EXPORT { Export_Id = 3; Path = %[1]s/other; Pseudo = /other; Access_Type = RW; FSAL { Name = VFS; } }
LOG { Default_Log_Level = EVENT; }
`

// ganeshaScript runs an rpcbind, which nfs-ganesha wants, in a network of its own
// and reaches it by a socket in a mount namespace of its own, so that nothing
// outside is touched.
const ganeshaScript = `
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

// ganeshaPatience bounds how long the processes may take to start and to end.
const ganeshaPatience = 20 * time.Second

// ganesha starts a private nfs-ganesha until the test ends.
func ganesha(t *testing.T) v3suite.Target {
	t.Helper()
	home := t.TempDir()
	for _, dir := range []string{"main", "ro", "other"} {
		freshDir(t, home, dir)
	}
	freshDir(t, filepath.Join(home, "ro"), "dir")
	if err := os.WriteFile(filepath.Join(home, "ro/dir/file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	nfs, mount := freePort(t), freePort(t)
	config := fmt.Sprintf(ganeshaConfig, home, nfs, mount)
	if err := os.WriteFile(filepath.Join(home, "conf"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	runGanesha(t, home)
	return v3suite.Target{
		Dial: dialer(fmt.Sprintf("127.0.0.1:%d", nfs)), DialMount: dialer(fmt.Sprintf("127.0.0.1:%d", mount)),
		Export: home + "/main", ReadOnly: home + "/ro", Other: home + "/other", Identities: true,
	}
}

// runGanesha starts the processes, waits until the log says that they serve, and
// ends them with the test.
func runGanesha(t *testing.T, home string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command("unshare", "-m", "sh", "-c", ganeshaScript, "ganesha", home)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	cmd.WaitDelay = ganeshaPatience
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
		case <-time.After(ganeshaPatience):
			t.Error("nfs-ganesha does not end")
			_ = cmd.Process.Kill()
		}
	})
	for deadline := time.Now().Add(ganeshaPatience); time.Now().Before(deadline); {
		log, err := os.ReadFile(filepath.Join(home, "log"))
		if err == nil && strings.Contains(string(log), "NFS SERVER INITIALIZED") {
			return
		}
		select {
		case <-done:
			t.Fatalf("nfs-ganesha ended:\n%s\n%s", log, out.Bytes())
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatal("nfs-ganesha does not start")
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

// wantGanesha skips the test where nfs-ganesha cannot be run, unless
// NFSBOX_REQUIRE demands it.
func wantGanesha(t *testing.T) {
	t.Helper()
	why := ""
	for _, tool := range []string{"ganesha.nfsd", "rpcbind", "unshare", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			why = fmt.Sprintf("%v (Debian: nfs-ganesha nfs-ganesha-vfs rpcbind)", err)
		}
	}
	if os.Geteuid() != 0 {
		why = "it runs as root only"
	}
	if why != "" {
		need.Missing(t, "ganesha", why)
	}
}

// TestV3SuiteGanesha holds the suite against another server, so that it asks for
// what RFC 1813 has and not for what ours does.
func TestV3SuiteGanesha(t *testing.T) {
	wantGanesha(t)
	t.Parallel() // it waits for the disk
	target := ganesha(t)
	target.Differences = ganeshaDifferences
	v3suite.Run(t, target)
}

const (
	badType  = "ganesha answers BADTYPE, which RFC 1813 has for MKNOD alone"
	pathLike = "ganesha takes names with '/' and NUL, and hands them to the system as paths: \"../up\" is out of the directory"
	leftOver = "ganesha sends bytes behind a refusal"
)

// ganeshaDifferences are what nfs-ganesha 4.3 does in its own way.
var ganeshaDifferences = map[string]string{
	"setattr/size-of-others":           badType,
	"create/over-others":               badType,
	"link/directory":                   badType,
	"create/dots":                      "ganesha answers ISDIR",
	"write/count-and-data-differ":      "ganesha writes the smaller of count and data",
	"write/stable-how-unknown":         "ganesha takes any number for stable",
	"symlink/target-of-a-client's-own": "ganesha cuts a target at a NUL",
	"link/as-many-as-there-can-be":     "ganesha announces a link_max of 8 and makes more",
	"readdir/too-small":                leftOver,
	"readdirplus/too-small":            leftOver,
	"readdirplus/dircount":             "ganesha does not look at dircount",
	"pathconf/name-max-holds":          "ganesha announces that it cuts long names, and refuses them",
	"commit/not-a-file":                "ganesha answers SERVERFAULT",
	"names/lookup-impossible":          pathLike,
	"names/create-impossible":          pathLike,
	"names/mkdir-impossible":           pathLike,
	"names/symlink-impossible":         pathLike,
	"names/mknod-impossible":           pathLike,
	"names/remove-impossible":          pathLike,
	"names/rmdir-impossible":           pathLike,
	"names/rename-from-impossible":     pathLike,
	"names/rename-to-impossible":       pathLike,
	"names/link-dir-impossible":        pathLike,
	"xdev/file-systems-differ":         "both exports are of one file system here",
	"identity/truncate-clears-set-uid": "ganesha leaves the set-uid bit where another user truncates",
	"rpc/rpc-version-unknown":          "ganesha closes the connection",
	"rpc/fragments":                    "ganesha closes the connection after many small fragments",
	"mount/dump":                       "ganesha keeps no list of mounts",
}
