// Package rusage tells what this process has used of its host: memory, and the processor's time.
package rusage

import "time"

// Time is the processor time of a process.
type Time struct {
	User   time.Duration // its own
	System time.Duration // the kernel's for it
}
