package server

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

// process is this test in a process of its own, in one of its roles. It ends with
// its standard input, or with the test that started it.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Reader
	err bytes.Buffer
}

func role(t *testing.T, name string, env ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=120s")}
	p.cmd.Env = append(append(os.Environ(), slowRole+"="+name), env...)
	p.cmd.Stderr = &p.err
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill() // the test has failed already
			_ = p.cmd.Wait()
		}
	})
	return p
}

// line is what the process says next.
func (p *process) line() string {
	p.t.Helper()
	s, err := p.out.ReadString('\n')
	if err != nil || strings.HasPrefix(s, "---") {
		rest, _ := io.ReadAll(p.out)
		p.t.Fatalf("a process ended early: %v: %s%s%s", err, s, rest, &p.err)
	}
	return strings.TrimSpace(s)
}

// end ends the process, and looks whether all went well there.
func (p *process) end() {
	p.t.Helper()
	if err := p.in.Close(); err != nil {
		p.t.Error(err)
	}
	rest, err := io.ReadAll(p.out)
	if err := errors.Join(err, p.cmd.Wait()); err != nil {
		p.t.Errorf("%v: %s%s", err, rest, &p.err)
	}
}

// untilEnd waits for the end that a process is told.
func untilEnd(t *testing.T) {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		t.Error(err)
	}
}

// watch has the process' threads counted until it is asked how many were the most.
func (p *process) watch() func() int {
	var most int
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			most = max(most, p.threads())
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	end := sync.OnceValue(func() int {
		close(stop)
		wg.Wait()
		return most
	})
	p.t.Cleanup(func() { end() }) // also if the test fails before it asks
	return end
}

func (p *process) threads() int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Error(err)
		return 0
	}
	_, line, _ := bytes.Cut(b, []byte("\nThreads:"))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	n, err := strconv.Atoi(string(bytes.TrimSpace(line)))
	if err != nil {
		p.t.Error(err)
	}
	return n
}

// frame is a call of alice's as it goes over the wire, but for its number.
func frame(t *testing.T, p *xdr.Proc, args xdr.Appender) []byte {
	t.Helper()
	auth, err := alice.Auth()
	if err != nil {
		t.Fatal(err)
	}
	rec := make([]byte, 4)
	for _, w := range []uint32{0, 0, 2, p.Program, p.Version, p.Number, uint32(auth.Flavor), uint32(len(auth.Body))} {
		rec = binary.BigEndian.AppendUint32(rec, w)
	}
	rec = append(append(rec, auth.Body...), make([]byte, 8)...)
	if rec, err = args.AppendXDR(rec); err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint32(rec, 1<<31|uint32(len(rec)-4))
	return rec
}

// number is that of the call which a reply answers, if it answers that all is well.
func number(reply []byte) (uint32, error) {
	if len(reply) < 32 || binary.BigEndian.Uint32(reply[28:]) != 0 {
		return 0, fmt.Errorf("a reply of % x", reply[:min(len(reply), 40)])
	}
	return binary.BigEndian.Uint32(reply[4:]), nil
}

// loadSlowly is the clients, half of which read and half of which commit.
func loadSlowly(t *testing.T, clients int) {
	h, err := hex.DecodeString(os.Getenv("NFSBOX_TEST_SLOW_FILE"))
	if err != nil {
		t.Fatal(err)
	}
	calls := [2][]byte{
		frame(t, nfs3.NFSPROC3_COMMIT, &nfs3.COMMIT3args{File: fh(h)}),
		frame(t, nfs3.NFSPROC3_READ, &nfs3.READ3args{File: fh(h), Count: 8}),
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			if err := waitForDisk(os.Getenv("NFSBOX_TEST_SLOW_ADDR"), bytes.Clone(calls[i%2]), &stop); err != nil {
				t.Error(err)
			}
		})
	}
	untilEnd(t)
	stop.Store(true)
	wg.Wait()
}

// waitForDisk is a client that makes a call one time after the other.
func waitForDisk(addr string, call []byte, stop *atomic.Bool) (err error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, nc.Close()) }()
	reply := make([]byte, 512)
	for xid := uint32(1); !stop.Load(); xid++ {
		binary.BigEndian.PutUint32(call[4:], xid)
		if _, err := nc.Write(call); err != nil {
			return err
		}
		n, err := nc.Read(reply) // small enough to come at once
		if err != nil {
			return err
		}
		if got, err := number(reply[:n]); err != nil || got != xid {
			return fmt.Errorf("call %d: %d: %w", xid, got, err)
		}
	}
	return nil
}

// probe asks for attributes a thousand times a second, n times, whether or not
// earlier answers have come, and returns how long each took from when it was due.
func probe(t *testing.T, addr string, h []byte, n int) []time.Duration {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := nc.Close(); err != nil {
			t.Error(err)
		}
	}()
	call := frame(t, nfs3.NFSPROC3_GETATTR, &nfs3.GETATTR3args{Object: fh(h)})
	const every = time.Millisecond
	start := time.Now().Add(every)
	sent := make(chan error, 1)
	go func() { sent <- sendOnTime(nc, call, start, every, n) }()
	took := make([]time.Duration, n)
	replies, reply := bufio.NewReader(nc), make([]byte, 512)
	for range n {
		xid, err := next(replies, reply)
		if err != nil || xid >= uint32(n) || took[xid] != 0 {
			t.Fatalf("a reply to %d: %v", xid, err)
		}
		took[xid] = time.Since(start.Add(time.Duration(xid) * every))
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	return took
}

// sendOnTime makes the calls when they are due. It sleeps by a clock that is finer
// than that of the runtime's poller.
func sendOnTime(nc net.Conn, call []byte, start time.Time, every time.Duration, n int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for i := range n {
		if d := time.Until(start.Add(time.Duration(i) * every)); d > 0 {
			nap := unix.NsecToTimespec(int64(d))
			if err := unix.Nanosleep(&nap, nil); err != nil && err != unix.EINTR {
				return err
			}
		}
		binary.BigEndian.PutUint32(call[4:], uint32(i))
		if _, err := nc.Write(call); err != nil {
			return err
		}
	}
	return nil
}

// next reads a reply of one fragment into buf, and returns its number.
func next(r io.Reader, buf []byte) (uint32, error) {
	if _, err := io.ReadFull(r, buf[:4]); err != nil {
		return 0, err
	}
	n := int(binary.BigEndian.Uint32(buf) &^ (1 << 31))
	if n > len(buf)-4 {
		return 0, fmt.Errorf("a reply of %d bytes", n)
	}
	if _, err := io.ReadFull(r, buf[4:4+n]); err != nil {
		return 0, err
	}
	return number(buf[:4+n])
}
