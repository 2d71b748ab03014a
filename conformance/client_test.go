//go:build linux

package conformance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/xdr"
)

// clientModules are what the guest needs as a client.
var clientModules = []string{"virtio_pci", "virtio_net", "virtio_rng", "nfs", "nfsv3", "lockd"}

// manyFiles is how many files stay in the directory "many"; the guest knows the
// number as well.
const manyFiles = 10_000

// TestInteropKernelClient has the kernel's client work on a server of ours, all on one port.
func TestInteropKernelClient(t *testing.T) {
	want(t, clientTools...)
	l := newLab(t)
	port := l.serve()
	l.workload(config{
		image:  l.image(clientModules, clientTools, sources),
		params: clientParams("10.0.2.2", fmt.Sprintf("vers=3,proto=tcp,nolock,port=%[1]d,mountport=%[1]d,mountproto=tcp,mountvers=3", port)),
	})
}

// TestInteropKernelClientDefaults mounts as people do, without options for ports and with
// locks: the guest asks the port mapper for everything.
func TestInteropKernelClientDefaults(t *testing.T) {
	want(t, clientTools...)
	l := newLab(t)
	port := l.serve("--grace=1s") // no client has locks to reclaim
	if !l.hasLocks(port) {
		t.Skip("NOT TESTED: the server has no lock manager")
	}
	// At this address of the guest's network the default ports lead to our server.
	var forward strings.Builder
	for _, p := range []int{111, 2049, port} {
		fmt.Fprintf(&forward, ",guestfwd=tcp:10.0.2.100:%d-cmd:%s relay 127.0.0.1:%d", p, l.guest, port)
	}
	l.workload(config{
		image:   l.image(clientModules, clientTools, sources),
		forward: forward.String(),
		params:  append(clientParams("10.0.2.100", "vers=3,proto=tcp,mountproto=tcp"), "nfsbox.only=create,locks,blocking-lock,sqlite"),
	})
}

func clientParams(server, opts string) []string {
	params := []string{"nfsbox.role=client", "nfsbox.server=" + server, "nfsbox.opts=" + opts}
	if os.Geteuid() == 0 {
		params = append(params, "nfsbox.identities=1")
	}
	return params
}

// serve runs nfsbox serve on a directory of its own until the test ends, and
// returns its port.
func (l *lab) serve(flags ...string) int {
	l.t.Helper()
	dir := filepath.Join(l.home, "tree")
	if err := os.MkdirAll(filepath.Join(dir, "many"), 0o777); err != nil {
		l.t.Fatal(err)
	}
	for i := range manyFiles {
		if err := os.WriteFile(filepath.Join(dir, "many", fmt.Sprintf("stays-%05d", i)), nil, 0o644); err != nil {
			l.t.Fatal(err)
		}
	}
	args := append([]string{"serve", dir, "--listen", "127.0.0.1:0", "--localio", "off", "--state-dir", filepath.Join(l.home, "state")}, flags...)
	cmd := exec.Command(l.build("../cmd/nfsbox"), args...)
	var diag tail
	cmd.Stderr = &diag
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
		if err := cmd.Wait(); err != nil || l.t.Failed() {
			l.t.Logf("nfsbox serve: %v\n%s", err, diag.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		l.t.Fatalf("nfsbox serve: %v\n%s", err, diag.String())
	}
	u, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		l.t.Fatal(err)
	}
	addr, err := net.ResolveTCPAddr("tcp", u.Host)
	if err != nil {
		l.t.Fatal(err)
	}
	return addr.Port
}

// hasLocks asks whether there is a lock manager on a port.
func (l *lab) hasLocks(port int) bool {
	l.t.Helper()
	c := oncrpc.NewClient(oncrpc.ClientOptions{Dial: func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	}})
	reply, err := c.Call(l.ctx, nlm4.NLMPROC4_NULL, oncrpc.Auth{}, void{}, void{})
	reply.Release()
	var refusal *oncrpc.AcceptError
	if err != nil && !errors.As(err, &refusal) {
		l.t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		l.t.Fatal(err)
	}
	return err == nil
}

// workload boots a client and makes a subtest of each verdict.
func (l *lab) workload(c config) {
	l.t.Helper()
	m := l.boot(c)
	timeout := time.After(runTime)
	verdicts := 0
	for {
		select {
		case line, more := <-m.lines:
			if !more || line == "end" {
				if verdicts == 0 || !more {
					l.t.Errorf("the guest ended after %d verdicts", verdicts)
				}
				return
			}
			verdicts += verdict(l.t, line)
		case <-timeout:
			l.t.Fatalf("the guest has not ended after %v", runTime)
		}
	}
}

// verdict makes a subtest of a line, and counts it.
func verdict(t *testing.T, line string) int {
	word, rest, _ := strings.Cut(line, " ")
	name, _, _ := strings.Cut(rest, " ")
	switch word {
	case "ok", "FAIL", "skip":
		t.Run(strings.TrimSuffix(name, ":"), func(t *testing.T) {
			switch word {
			case "FAIL":
				t.Error(rest)
			case "skip":
				t.Skip(rest)
			default:
				t.Log(rest)
			}
		})
		return 1
	case "broken":
		t.Errorf("the guest: %s", rest)
	default:
		t.Log(line)
	}
	return 0
}

// void is no arguments and no results.
type void struct{}

func (void) AppendXDR(b []byte) ([]byte, error) { return b, nil }
func (void) DecodeXDR(*xdr.Decoder) error       { return nil }
