package bench

import "time"

// cpuTime is the processor time of a process.
type cpuTime struct{ user, system time.Duration }
