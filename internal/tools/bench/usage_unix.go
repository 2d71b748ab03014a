//go:build unix

package bench

import (
	"fmt"
	"syscall"
	"time"
)

// ownTime is the processor time of this process (getrusage(2)).
func ownTime() (cpuTime, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return cpuTime{}, fmt.Errorf("getrusage: %w", err)
	}
	return cpuTime{user: time.Duration(u.Utime.Nano()), system: time.Duration(u.Stime.Nano())}, nil
}
