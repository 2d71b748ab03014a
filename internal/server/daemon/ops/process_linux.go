package ops

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ourProcess is what this process takes (proc_pid_status(5), getrusage(2)).
func ourProcess() (p process) {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) == nil {
		p.cpu = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return p
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		n, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 32)
		switch {
		case err != nil:
		case name == "Threads":
			p.threads = int(n)
		case name == "VmRSS":
			p.memory = n << 10
		}
	}
	return p
}
