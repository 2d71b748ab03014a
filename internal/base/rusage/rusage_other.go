//go:build !unix

package rusage

import (
	"runtime"
)

// MaxRSS is the memory that the Go runtime has taken from the system, in bytes: an upper bound of
// the resident memory.
func MaxRSS() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys
}

// CPU is 0: this system is not asked.
func CPU() (Time, error) { return Time{}, nil }
