package mounter

import (
	"os"
	"runtime"
)

// maxReaders is how many threads of a mount wait for the kernel in read(2) at most. One more comes while all have work.
const maxReaders = 16

// spareProcessors gives Go's scheduler a processor more for each thread that may wait in read(2) of /dev/fuse, until restore is
// called. A thread keeps its processor in a system call. Where no other is idle, the scheduler's monitor takes it away every few
// microseconds, wakes another thread for it, and neither sleeps: on a host of two processors that is a third of what the mount spends
// on a small request. $GOMAXPROCS decides where it is set.
func spareProcessors() (restore func()) {
	if os.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(before + min(max(before, 2), maxReaders) + 1)
	return func() { runtime.GOMAXPROCS(before) }
}
