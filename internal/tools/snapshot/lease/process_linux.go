package lease

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// self is this process. What the system does not tell is left out: then only its age ends the lease.
func self() process {
	p := process{PID: os.Getpid(), Start: startOf(os.Getpid())}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return p
	}
	if space, err := os.Readlink("/proc/self/ns/pid"); err == nil {
		p.Boot = strings.TrimSpace(string(boot)) + " " + space
	}
	return p
}

// gone reports whether a process of this boot and namespace has ended. In doubt it has not.
func gone(p process) bool {
	if p.PID <= 0 {
		return false
	}
	if err := syscall.Kill(p.PID, 0); errors.Is(err, syscall.ESRCH) {
		return true
	}
	start := startOf(p.PID)
	return start != 0 && p.Start != 0 && start != p.Start // another process has the number now
}

// startOf is when a process began (proc_pid_stat(5), field 22); 0 if the system does not tell.
func startOf(pid int) uint64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	i := bytes.LastIndexByte(b, ')') // the name before may have anything in it
	fields := bytes.Fields(b[i+1:])
	const field = 22 - 3 // the first one behind the name is the third
	if i < 0 || len(fields) <= field {
		return 0
	}
	n, err := strconv.ParseUint(string(fields[field]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
