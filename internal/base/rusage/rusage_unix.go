//go:build unix

package rusage

import (
	"fmt"
	"runtime"
	"syscall"
	"time"
)

// MaxRSS is the peak of the process's resident memory, in bytes (getrusage(2)); 0 if it cannot be had.
func MaxRSS() uint64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return uint64(u.Maxrss) // bytes on macOS, kilobytes elsewhere
	}
	return uint64(u.Maxrss) << 10
}

// CPU is the processor time of the process: its own, and the kernel's for it (getrusage(2)).
func CPU() (Time, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return Time{}, fmt.Errorf("getrusage: %w", err)
	}
	return Time{User: time.Duration(u.Utime.Nano()), System: time.Duration(u.Stime.Nano())}, nil
}
