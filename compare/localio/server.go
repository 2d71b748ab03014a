package main

import (
	"context"
	"errors"
	"math/bits"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"github.com/nfsbox/nfsbox/compare/internal/serve"
)

// start starts nfsbox serve, which is bound to a core if we are.
func start(ctx context.Context, o *options) (*serve.Process, *url.URL, error) {
	if err := os.MkdirAll(o.sockets(), 0o755); err != nil {
		return nil, nil, err
	}
	args := []string{"serve", "--listen", "127.0.0.1:0", "--state-dir", filepath.Join(o.home, "state"), "--localio-dir", o.sockets()}
	return serve.Ours(exec.CommandContext(ctx, o.server, append(append(args, o.flags...), o.export())...))
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
