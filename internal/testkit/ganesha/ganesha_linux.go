package ganesha

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/child"
	"github.com/nfsbox/nfsbox/internal/testkit/port"
)

// config has NFS and MOUNT at the ports %[1]d and %[2]d, and ends with the exports.
const config = `
NFS_CORE_PARAM { NFS_Port = %[1]d; MNT_Port = %[2]d; Bind_addr = 127.0.0.1;
	Protocols = 3; Enable_NLM = false; Enable_RQUOTA = false;
	Enable_UDP = false; mount_path_pseudo = false; }
NFSV4 { Graceless = true; }
NFS_KRB5 { Active_krb5 = false; }
EXPORT_DEFAULTS { Protocols = 3; Transports = TCP; SecType = sys;
	Squash = No_Root_Squash; PrivilegedPort = false; }
LOG { Default_Log_Level = EVENT; }
%[3]s`

// script runs rpcbind and the server in one mount namespace with a /run of its own, where
// their socket is. rpcbind has another network. SIGTERM ends both.
const script = `
# Mounts of this host are not ours: a copy would keep them alive when their tests unmount them.
umount -l -a -t fuse.nfsbox
mount -t tmpfs tmpfs /run && mkdir -p /run/ganesha /run/rpcbind || exit 1
mount -t tmpfs tmpfs /var/lib/nfs && mkdir -p /var/lib/nfs/ganesha || exit 1
unshare -n sh -c 'ip link set lo up; exec rpcbind -f -w' &
rpcbind=$!
trap 'kill $ganesha $rpcbind; wait' TERM
for i in $(seq 100); do [ -S /run/rpcbind.sock ] && break; sleep 0.1; done
ganesha.nfsd -F -L "$1/log" -f "$1/conf" -p "$1/pid" &
ganesha=$!
echo $ganesha >"$1/ganesha"
wait $ganesha
kill $rpcbind; wait`

// Patience bounds how long the processes may take to start and to end.
const Patience = 20 * time.Second

// Missing returns why nfs-ganesha cannot run here; nil if it can.
func Missing() error {
	for _, tool := range []string{"ganesha.nfsd", "rpcbind", "unshare", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w (Debian: nfs-ganesha nfs-ganesha-vfs rpcbind)", err)
		}
	}
	if os.Geteuid() != 0 {
		return errors.New("it runs as root only")
	}
	return nil
}

// Server is a configured server. Nothing runs before Command or Start.
type Server struct {
	NFS, Mount int // ports

	home string
}

// New prepares a server in home, an empty directory. exports are the EXPORT blocks of its
// configuration, as ganesha-export-config(8) has them.
func New(home, exports string) (*Server, error) {
	s := &Server{home: home}
	for s.NFS == s.Mount { // also where they are one by chance
		for _, p := range []*int{&s.NFS, &s.Mount} {
			address, err := port.Free("127.0.0.1")
			if err != nil {
				return nil, err
			}
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return nil, err
			}
			*p = int(at.Port())
		}
	}
	return s, os.WriteFile(filepath.Join(home, "conf"), fmt.Appendf(nil, config, s.NFS, s.Mount, exports), 0o600)
}

// URL is that of an exported directory.
func (s *Server) URL(dir string) string {
	return fmt.Sprintf("nfs://127.0.0.1%s?nfsport=%d&mountport=%d", dir, s.NFS, s.Mount)
}

// Command returns the command that runs the server. SIGTERM ends it, and so does the end of
// ctx.
func (s *Server) Command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "unshare", "-m", "sh", "-c", script, "ganesha", s.home)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = Patience
	return cmd
}

// Serves reports whether the server answers, by its log.
func (s *Server) Serves() bool { return bytes.Contains(s.log(), []byte("NFS SERVER INITIALIZED")) }

func (s *Server) log() []byte {
	b, _ := os.ReadFile(filepath.Join(s.home, "log")) // there is none yet
	return b
}

// PID is the server's own process, once it serves. The process of Command is its parent.
func (s *Server) PID() (int, error) {
	b, err := os.ReadFile(filepath.Join(s.home, "ganesha"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// Start runs a server with these exports until the test ends.
func Start(t testing.TB, exports string) *Server {
	t.Helper()
	s, err := New(t.TempDir(), exports)
	if err != nil {
		t.Fatal(err)
	}
	out, done := run(t, s.Command(context.Background()))
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); {
		if s.Serves() {
			return s
		}
		select {
		case <-done:
			t.Fatalf("nfs-ganesha ended:\n%s\n%s", s.log(), out.Bytes())
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatalf("nfs-ganesha does not start:\n%s", s.log())
	return nil
}

// run starts a server's command, which ends with the test. done is closed when it has ended; what it has printed
// is whole then.
func run(t testing.TB, cmd *exec.Cmd) (out *bytes.Buffer, done <-chan struct{}) {
	t.Helper()
	out = new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, out
	ended, err := child.Start(cmd, syscall.SIGTERM)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
		select {
		case <-ended:
		case <-time.After(Patience):
			t.Error("nfs-ganesha does not end")
			_ = cmd.Process.Kill()
			<-ended
		}
	})
	return out, ended
}
