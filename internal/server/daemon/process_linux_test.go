package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

func TestRaiseFiles(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if n, err := raiseFiles(limit.Cur); err != nil || n != limit.Cur {
		t.Errorf("%d, %v", n, err)
	}
	// Beyond what any kernel allows (fs.nr_open is at most 2^30).
	if n, err := raiseFiles(1 << 40); err == nil || n == 0 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestCapabilities(t *testing.T) {
	c := capabilities{{Effective: ^uint32(0), Permitted: ^uint32(0)}, {Permitted: 1 << 8, Inheritable: 1 << 8}}
	for _, n := range []uint{24, 40} {
		if !c.has(n) {
			t.Errorf("%d is not there", n)
		}
		c.without(n)
		if c.has(n) {
			t.Errorf("%d is there", n)
		}
	}
	if c[0].Effective != ^uint32(1<<24) || c[0].Permitted != ^uint32(1<<24) || c[1] != (unix.CapUserData{}) {
		t.Errorf("left: %+v", c)
	}
}

// TestListenErrors says who has the port, and what to do.
func TestListenErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	c := confOf(t.TempDir(), t.TempDir())
	c.Listen = []string{l.Addr().String()}
	err = Serve(t.Context(), c, World{Rand: counter()}, func(Running) error { return errors.New("it serves") })
	if err == nil || !strings.HasSuffix(err.Error(), " name another port with --listen") {
		t.Errorf("in use: %v", err)
	}
	// That may be too late for the error, on a host that has much else to do.
	if who := search("tcp", c.Listen[0]); who != "this server has it already;" {
		t.Errorf("who has it: %s", who)
	}
	c.Listen = []string{"192.0.2.1:2049"} // for documentation: nobody has it
	err = Serve(t.Context(), c, World{Rand: counter()}, func(Running) error { return errors.New("it serves") })
	if err == nil || !strings.Contains(err.Error(), "no such address") {
		t.Errorf("no address of ours: %v", err)
	}
	if err := listenError("tcp", "portmap-listen", ":111", &net.OpError{Err: os.NewSyscallError("bind", syscall.EACCES)}); !strings.Contains(err.Error(), "CAP_NET_BIND_SERVICE") {
		t.Errorf("below 1024: %v", err)
	}
}

// TestSearchEnds: a search that /proc keeps is waited for no longer than searchTime.
func TestSearchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, begun := make(chan struct{}), time.Now()
		if got := soon(func() string { <-kept; return "found too late" }); got != somebody {
			t.Error(got)
		}
		if took := time.Since(begun); took != searchTime {
			t.Errorf("it took %v", took)
		}
		close(kept)
		if got := soon(func() string { return "found" }); got != "found" || time.Since(begun) != searchTime {
			t.Errorf("%s, after %v", got, time.Since(begun))
		}
	})
}

// listenVar makes the test binary the child of TestHolder.
const listenVar = "NFSBOX_TEST_LISTEN"

// TestHolder tells who has a port: another process, or nobody that is known where it
// is one of the other protocol.
func TestHolder(t *testing.T) {
	if os.Getenv(listenVar) != "" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		fmt.Println(l.Addr(), err)
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent has seen enough
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestHolder$")
	cmd.Env = append(os.Environ(), listenVar+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var address string
	if _, err := fmt.Fscan(out, &address); err != nil {
		t.Error(err)
	}
	them := fmt.Sprintf("process %d (", cmd.Process.Pid)
	if got := search("tcp", address); !strings.HasPrefix(got, them) || !strings.HasSuffix(got, ") has it; end it, or") {
		t.Errorf("who listens: %s", got)
	}
	if got := search("udp", address); strings.HasPrefix(got, them) {
		t.Errorf("who listens over TCP is said to do so over UDP: %s", got)
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Error(err)
	}
}

// childVar makes the test binary the child of TestDropCapability.
const childVar = "NFSBOX_TEST_DROP"

// TestDropCapability lays down a capability, in a process of its own: no thread
// has it afterwards, those of before and those of later, with cgo and without.
func TestDropCapability(t *testing.T) {
	const other = unix.CAP_SYS_CHROOT // that we do not need, and root has in most places
	if os.Getenv(childVar) != "" {
		dropped(t, other)
		return
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps capabilities
	if err := unix.Capget(&head, &caps[0]); err != nil {
		t.Fatal(err)
	}
	if !caps.has(other) || !caps.has(unix.CAP_SETPCAP) {
		t.Skip("takes root, with its capabilities")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestDropCapability$", "-test.v")
	cmd.Env = append(os.Environ(), childVar+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("threads without it")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// dropped is the child.
func dropped(t *testing.T, n uint) {
	hold := make(chan struct{})
	busy := func() { // a thread of its own
		runtime.LockOSThread()
		<-hold
	}
	for range 4 {
		go busy()
	}
	if err := dropCapability(n); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		go busy()
	}
	tasks, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(tasks) < 2 {
		t.Fatal(tasks, err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // that thread is gone
		}
		for _, key := range []string{"CapInh:\t", "CapPrm:\t", "CapEff:\t"} {
			_, rest, _ := strings.Cut(string(text), key)
			digits, _, _ := strings.Cut(rest, "\n")
			if caps, err := strconv.ParseUint(digits, 16, 64); err != nil || caps&(1<<n) != 0 {
				t.Errorf("%s: %s%s, %v", task, key, digits, err)
			}
		}
	}
	close(hold)
	t.Logf("%d threads without it", len(tasks))
}
