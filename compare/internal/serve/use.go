package serve

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// CPU is the processor time that the server has used.
func (p *Process) CPU() time.Duration { return CPU(p.pid) }

// CPU is the processor time that a process has used, all its threads together; 0 is
// this one. Of a process that is gone it is 0. Its clock is CPUCLOCK_SCHED of that process
// (clock_getcpuclockid(3)), which counts what /proc/PID/stat has in whole ticks.
func CPU(pid int) time.Duration {
	var t syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(^pid<<3|2), uintptr(unsafe.Pointer(&t)), 0)
	if errno != 0 {
		return 0
	}
	return time.Duration(t.Nano())
}

// Most is the most that was seen of what a server holds.
type Most struct{ Threads, MiB float64 }

// Watch looks at the server now and then until its result is called, which returns the
// most threads and memory seen.
func (p *Process) Watch() func() Most {
	stop := make(chan struct{})
	var most Most
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			now := p.holds()
			most = Most{max(most.Threads, now.Threads), max(most.MiB, now.MiB)}
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	return func() Most {
		close(stop)
		wg.Wait()
		return most
	}
}

// holds is what proc_pid_status(5) says.
func (p *Process) holds() (m Most) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid)) // of one that is gone: nothing
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		switch key {
		case "Threads":
			m.Threads = n
		case "VmRSS":
			m.MiB = n / 1024
		}
	}
	return m
}
