package ganesha

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hostConfig has a lock manager, and leaves all ports but NFS's to chance. %[1]s says what of a grace,
// %[2]s are the exports.
const hostConfig = `
NFS_CORE_PARAM { Protocols = 3; Enable_NLM = true; Enable_RQUOTA = false;
	Enable_UDP = false; mount_path_pseudo = false; }
NFSV4 { %[1]s }
NFS_KRB5 { Active_krb5 = false; }
EXPORT_DEFAULTS { Protocols = 3; Transports = TCP; SecType = sys;
	Squash = No_Root_Squash; PrivilegedPort = false; }
LOG { Default_Log_Level = EVENT; }
%[2]s`

// hostScript runs rpcbind, the status monitor and the server in a network of their own, and the server again
// when it has ended and the file "again" is there. SIGTERM ends them all.
const hostScript = `
# Mounts of this host are not ours: a copy would keep them alive when their tests unmount them.
umount -l -a -t fuse.nfsbox
mount -t tmpfs tmpfs /run && mkdir -p /run/ganesha /run/rpcbind || exit 1
mount -t tmpfs tmpfs /var/lib/nfs && mkdir -p /var/lib/nfs/ganesha /var/lib/nfs/sm /var/lib/nfs/sm.bak || exit 1
ip link set lo up || exit 1
rpcbind -f -w &
rpcbind=$!
statd= ganesha=
trap 'kill $ganesha $statd $rpcbind; wait; exit' TERM
for i in $(seq 200); do rpcinfo -T tcp 127.0.0.1 100000 2 >/dev/null 2>&1 && break; sleep 0.1; done
rpc.statd -F --no-notify &
statd=$!
for i in $(seq 200); do rpcinfo -T tcp 127.0.0.1 100024 1 >/dev/null 2>&1 && break; sleep 0.1; done
echo $$ >"$1/host"
while :; do
	ganesha.nfsd -F -L "$1/log" -f "$1/conf" -p "$1/pid" &
	ganesha=$!
	echo $ganesha >"$1/ganesha"
	wait $ganesha
	[ -e "$1/again" ] || break
	rm "$1/again"
done
kill $statd $rpcbind; wait`

// Host is a server with a lock manager, and the network in which it is alone with its port mapper and its
// status monitor.
type Host struct {
	Server
	t    testing.TB
	net  *os.File // its network namespace
	done <-chan struct{}
}

// MissingHost returns why StartHost cannot; nil if it can.
func MissingHost() error {
	for _, tool := range []string{"rpc.statd", "rpcinfo"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w (Debian: nfs-common rpcbind)", err)
		}
	}
	return Missing()
}

// StartHost runs a server with these exports, in a network of its own, until the test ends. It has a grace for that
// long after each start; 0: never.
func StartHost(t testing.TB, exports string, grace time.Duration) *Host {
	t.Helper()
	how := "Graceless = true;"
	if grace > 0 {
		how = fmt.Sprintf("Grace_Period = %d; Lease_Lifetime = %[1]d;", grace/time.Second)
	}
	h := &Host{Server: Server{home: t.TempDir()}, t: t}
	if err := os.WriteFile(filepath.Join(h.home, "conf"), fmt.Appendf(nil, hostConfig, how, exports), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "-m", "-n", "sh", "-c", hostScript, "ganesha", h.home)
	out, done := run(t, cmd)
	h.done = done
	if err := h.await(1); err != nil {
		t.Fatalf("%v\n%s\n%s", err, h.log(), out.Bytes())
	}
	pid, err := os.ReadFile(filepath.Join(h.home, "host"))
	if err == nil {
		h.net, err = os.Open(fmt.Sprintf("/proc/%s/ns/net", bytes.TrimSpace(pid)))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.net.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// await waits until the server has begun to serve for the nth time.
func (h *Host) await(n int) error {
	for end := time.Now().Add(hostPatience); time.Now().Before(end); {
		if bytes.Count(h.log(), []byte("NFS SERVER INITIALIZED")) >= n {
			return nil
		}
		select {
		case <-h.done:
			return errors.New("nfs-ganesha has ended")
		case <-time.After(50 * time.Millisecond):
		}
	}
	return errors.New("nfs-ganesha does not start")
}

// hostPatience bounds the start of all that a Host runs.
const hostPatience = 3 * Patience

// Restart kills the server, and starts it again.
func (h *Host) Restart() {
	h.t.Helper()
	begun := bytes.Count(h.log(), []byte("NFS SERVER INITIALIZED"))
	pid, err := h.PID()
	if err == nil {
		err = os.WriteFile(filepath.Join(h.home, "again"), nil, 0o600)
	}
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err == nil {
		err = h.await(begun + 1)
	}
	if err != nil {
		h.t.Fatalf("starting nfs-ganesha again: %v\n%s", err, h.log())
	}
}

// URL is that of an exported directory, for a client with DialContext.
func (h *Host) URL(dir string) string { return "nfs://127.0.0.1" + dir }

// DialContext connects as a program in the Host's network.
func (h *Host) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	type dialed struct {
		conn net.Conn
		err  error
	}
	c := make(chan dialed, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this goroutine, and its network with it
		if err := unix.Setns(int(h.net.Fd()), unix.CLONE_NEWNET); err != nil {
			c <- dialed{nil, fmt.Errorf("the network of nfs-ganesha: %w", err)}
			return
		}
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, address)
		c <- dialed{conn, err}
	}()
	got := <-c
	return got.conn, got.err
}
