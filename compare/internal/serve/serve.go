// Package serve runs the servers that are compared, each as a process of its own: it
// builds nfsbox, starts a server and waits until it serves, looks at the processor time,
// the threads and the memory that it uses, and ends it. What else all comparisons share is
// here as well: that they can be interrupted, and that all they print is medians of what
// several rounds have found.
package serve

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// patience bounds how long a server may take to start or to end.
const patience = 20 * time.Second

// Main is the rest of a main function: compare, until it is done or interrupted.
func Main(compare func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := compare(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Build builds nfsbox in dir, from the module above the directory that the command runs
// in, and returns the program. With threads it is built with cgo, whose threads one of
// its pools has.
func Build(ctx context.Context, dir string, threads bool) (string, error) {
	program := filepath.Join(dir, "nfsbox")
	args := []string{"build", "-C", "..", "-o", program}
	env := os.Environ()
	if threads {
		args, env = append(args, "-tags", "nfsbox_cthreads"), append(env, "CGO_ENABLED=1")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/nfsbox")...)
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building nfsbox: %w: %s", err, out)
	}
	return program, nil
}

// Process is a server that runs.
type Process struct {
	cmd  *exec.Cmd
	pid  int          // whose use is looked at
	log  bytes.Buffer // its stderr, and a peer's stdout, complete once it has ended
	peer bool
}

// Ours starts nfsbox serve, or another server that prints the URL that it serves as its
// first line, and returns that.
func Ours(cmd *exec.Cmd) (*Process, *url.URL, error) {
	p := &Process{cmd: cmd}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := p.start(); err != nil {
		return nil, nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		err = errors.Join(err, cmd.Wait())
		return nil, nil, fmt.Errorf("%s serves not: %w: %s", cmd.Path, err, p.log.Bytes())
	}
	u, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		return nil, nil, errors.Join(err, p.Stop())
	}
	return p, u, nil
}

// Peer starts a server that is not ours, and waits until up says that it serves.
func Peer(cmd *exec.Cmd, up func() bool) (*Process, error) {
	p := &Process{cmd: cmd, peer: true}
	cmd.Stdout = &p.log
	if err := p.start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if up() {
			return p, nil
		}
	}
	err := p.Stop()
	return nil, errors.Join(fmt.Errorf("%s does not start: %s", cmd.Path, p.log.Bytes()), err)
}

// start starts the process. It is told to end, and not killed, when this one ends or is
// interrupted: it may have started others, which it ends with itself.
func (p *Process) start() error {
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = patience
	p.cmd.Stderr = &p.log
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.pid = p.cmd.Process.Pid
	return nil
}

// Look has another process looked at, which the server has started to serve.
func (p *Process) Look(pid int) { p.pid = pid }

// Stop ends the server, in good order if it will. A server that dies of the
// signal has ended well, and so has every peer.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() }) // it had its chance
	defer timer.Stop()
	err := p.cmd.Wait()
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if err == nil || p.peer || ok && status.Signaled() && status.Signal() == syscall.SIGTERM {
		return nil
	}
	return fmt.Errorf("the server ended: %w: %s", err, p.log.Bytes())
}

// Ports returns n ports that were free a moment ago.
func Ports(n int) (ports []int, err error) {
	for range n {
		l, e := net.Listen("tcp", "127.0.0.1:0")
		if e != nil {
			return nil, errors.Join(err, e)
		}
		defer func() { err = errors.Join(err, l.Close()) }() // only then, so that no port is given twice
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// Accepts reports whether somebody listens at an address.
func Accepts(addr string) bool {
	c, err := net.Dial("tcp", addr)
	return err == nil && c.Close() == nil
}

// Turns is the order of n peers in a round: every other one goes backwards, so that
// nobody always comes behind the same peer, or later than the others in a round.
func Turns(n, round int) []int {
	turns := make([]int, n)
	for i := range turns {
		turns[i] = i
	}
	if round%2 != 0 {
		slices.Reverse(turns)
	}
	return turns
}

// Median is that of a column of the runs, and 0 if there are none.
func Median[F any](runs []F, column func(*F) float64) float64 {
	if len(runs) == 0 {
		return 0
	}
	values := make([]float64, len(runs))
	for i := range runs {
		values[i] = column(&runs[i])
	}
	slices.Sort(values)
	return values[len(values)/2]
}
