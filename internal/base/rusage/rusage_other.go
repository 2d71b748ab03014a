//go:build !unix

package main

import "runtime"

// maxRSS is the memory that the Go runtime has taken from the system, in bytes: an upper bound of
// the resident memory.
func maxRSS() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys
}
