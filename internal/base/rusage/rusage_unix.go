//go:build unix

package main

import (
	"runtime"
	"syscall"
)

// maxRSS is the peak of the process's resident memory, in bytes (getrusage(2)).
func maxRSS() uint64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return uint64(u.Maxrss) // bytes on macOS, kilobytes elsewhere
	}
	return uint64(u.Maxrss) << 10
}
