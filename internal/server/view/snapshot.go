package view

import (
	"time"

	"github.com/nfsbox/nfsbox/internal/base/metric"
)

// Snapshot is the values of a server's counters at one time. A total only grows, from the
// start of the server or from when its part was added; all else is the present value.
// Parts that a server does not have are left zero, and are not shown.
type Snapshot struct {
	URL     string    // where clients find the server
	Version string    // of the program
	Started time.Time // tells one life of the server from the next; required
	Procs   []Proc
	Process Process
	Conns   Conns
	Gate    Gate
	Limits  []Limit
	LocalIO *LocalIO
	Caches  []Cache
	Jobs    []Job
	Clients []Client
}

// Client is a client that has connections. Name tells it from others. If a total is less
// than before, connections were closed, and what is left is counted as new.
type Client struct {
	Name     string // an address, or USER@ADDRESS
	User     string // "": not known
	Conns    int
	InFlight int    // calls that have no answer yet
	Calls    uint64 // totals, of the connections that are open
	BytesIn  uint64
	BytesOut uint64
}

// Proc are the counters of one procedure. Program, Version and Name tell it from
// others; what has them in common, such as one procedure over two transports, is
// added up.
type Proc struct {
	Name     string // as people say it: "READ"
	Program  string // the same: "NFS"
	Version  uint32
	Calls    uint64 // totals
	Errors   uint64
	BytesIn  uint64
	BytesOut uint64
	Latency  *metric.Snapshot // total, in nanoseconds
}

// Process is what the server takes of its host; 0 is not known.
type Process struct {
	Threads int
	CPU     time.Duration // total, of all processors
	Memory  uint64        // resident bytes
}

// Conns are the connections and the clients behind them.
type Conns struct {
	Open     int
	Clients  int    // known, by address
	Accepted uint64 // totals
	Evicted  uint64
	Refused  uint64
}

// Gate is the way to the disk.
type Gate struct {
	Kind    string // in force
	Reason  string // why it is not the one that was asked for; "" if it is
	Bound   int    // threads that the disk may hold
	Inside  int    // calls at the disk
	Waiting int    // calls that wait for it
	Memory  uint64 // total: reads that found all in memory
	Lanes   []Lane
}

// Lane is the way of one export's calls of one class. Export and Name tell it from
// others.
type Lane struct {
	Export  string
	Name    string // "read"
	Inside  int
	Waiting int
	Entered uint64 // totals
	Refused uint64
	Waits   uint64        // of Entered, those that had to wait
	Waited  time.Duration // the sum of their waits
}

// Limit is a bound and how much of it is taken.
type Limit struct {
	Name  string // "connections"
	Bytes bool   // Used and Max are bytes
	Used  uint64
	Max   uint64 // 0: no bound
}

// LocalIO is what clients on the server's own host do past the network.
type LocalIO struct {
	Sessions int
	Files    int    // lent out now
	Opened   uint64 // totals: files lent
	Refused  uint64
	Revoked  uint64
}

// Cache is a store of what would otherwise be fetched or computed again.
type Cache struct {
	Name   string // tells it from others
	Bytes  bool   // Used and Max are bytes
	Used   uint64
	Max    uint64 // 0: no bound
	Hits   uint64 // totals
	Misses uint64
}

// Job is a long task under way or ended.
type Job struct {
	Name   string
	State  string // "running"
	Items  uint64 // done
	Total  uint64 // to do in all; 0: not known yet
	Bytes  uint64 // done
	Failed uint64 // items
}

// SlowCall is one call that took long.
type SlowCall struct {
	At     time.Time // when it ended
	Proc   string    // "READ"
	Client string
	XID    uint32 // 0: it has none
	Took   time.Duration
	Waited time.Duration // of it, until work on it began
	Path   string        // what it was about, or its handle; "": not known
	Detail string        // what else is known; may be ""
}
