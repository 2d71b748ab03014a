package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// patience bounds how long a server may take to end.
const patience = 20 * time.Second

// server is an nfsbox that serves.
type server struct {
	cmd *exec.Cmd
	url *url.URL
	log bytes.Buffer // its stderr, complete once it has ended
}

func serve(ctx context.Context, o *options) (*server, error) {
	if err := os.MkdirAll(o.sockets(), 0o755); err != nil {
		return nil, err
	}
	args := []string{"serve", "--listen", "127.0.0.1:0", "--state-dir", filepath.Join(o.home, "state"), "--localio-dir", o.sockets()}
	s := &server{cmd: exec.CommandContext(ctx, o.server, append(append(args, o.flags...), o.export())...)}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.cmd.Stderr = &s.log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		err = errors.Join(err, s.cmd.Wait())
		return nil, fmt.Errorf("%s serves not: %w: %s", o.server, err, s.log.Bytes())
	}
	if s.url, err = url.Parse(strings.TrimSpace(line)); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// stop ends the server, in good order if it will.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() }) // it had its chance
	defer timer.Stop()
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("the server ended: %w: %s", err, s.log.Bytes())
	}
	return nil
}

func (s *server) cpu() time.Duration { return cpu(s.cmd.Process.Pid) }

// cpu is the processor time that a process has used, all its threads together; 0
// is this one. Its clock is CPUCLOCK_SCHED of that process (clock_getcpuclockid(3)).
func cpu(pid int) time.Duration {
	var t syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(^pid<<3|2), uintptr(unsafe.Pointer(&t)), 0)
	if errno != 0 {
		panic(errno) // the process is ours, and not waited for yet
	}
	return time.Duration(t.Nano())
}

// cores is a set of processors, as sched_setaffinity(2) has it.
type cores [16]uint64

// pin binds this process to one core, and with it what it starts from now on,
// until unpin is called.
func pin() (unpin func() error, err error) {
	before, err := affinity()
	if err != nil {
		return nil, err
	}
	var one cores
	for i, word := range before {
		if word != 0 {
			one[i] = 1 << bits.TrailingZeros64(word)
			break
		}
	}
	procs := runtime.GOMAXPROCS(1)
	return func() error {
		runtime.GOMAXPROCS(procs)
		return bind(before)
	}, bind(one)
}

func affinity() (c cores, err error) {
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(c), uintptr(unsafe.Pointer(&c)))
	if errno != 0 {
		return c, os.NewSyscallError("sched_getaffinity", errno)
	}
	return c, nil
}

// bind binds every thread of this process. A thread that is made meanwhile has
// the cores of the one that makes it, so it is done again until none is new.
func bind(c cores) error {
	const tries = 10
	known := 0
	for range tries {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil || len(tasks) == known {
			return err
		}
		known = len(tasks)
		for _, task := range tasks {
			tid, err := strconv.Atoi(task.Name())
			if err != nil {
				return err
			}
			_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(tid), unsafe.Sizeof(c), uintptr(unsafe.Pointer(&c)))
			if errno != 0 && errno != syscall.ESRCH {
				return os.NewSyscallError("sched_setaffinity", errno)
			}
		}
	}
	return errors.New("sched_setaffinity: threads come faster than they can be bound")
}
