package view

import "time"

// Format is the version of Frame. It changes when a field is removed or changes its
// meaning. New fields do not change it, so readers must ignore fields that they do not
// know.
const Format = 1

// Frame is the content of /view.json: the figures of the last interval. Rates are per
// second, times in seconds, sizes in bytes; "total" is since the start of the server. A
// part that the server does not have is null or left out.
type Frame struct {
	Format   int       `json:"format"`   // 1
	URL      string    `json:"url"`      // where clients find the server
	Version  string    `json:"version"`  // of the program
	Started  time.Time `json:"started"`  // another one: another life of the server, whose points begin anew
	At       time.Time `json:"at"`       // when the interval ended
	Interval float64   `json:"interval"` // how long it was; 0 at first, when there are no rates yet
	Every    float64   `json:"every"`    // when there will be another Frame
	Healthy  bool      `json:"healthy"`  // /healthz says ok
	Health   string    `json:"health"`   // else why not

	Total   TotalFrame    `json:"total"`
	Process ProcessFrame  `json:"process"`
	Conns   ConnsFrame    `json:"connections"`
	Procs   []ProcFrame   `json:"procedures"` // those that were ever called
	Gate    GateFrame     `json:"gate"`
	Limits  []LimitFrame  `json:"limits"`
	LocalIO *LocalIOFrame `json:"localio"` // null: not served
	Caches  []CacheFrame  `json:"caches"`
	Jobs    []JobFrame    `json:"jobs"`
	Slow    []SlowFrame   `json:"slow"`    // the slowest first
	Clients []ClientFrame `json:"clients"` // the busiest first
	Files   []FileFrame   `json:"files"`   // the busiest first
	Left    int           `json:"left"`    // rows left out of the tables above
	Points  []Point       `json:"points"`  // the oldest first
}

// TotalFrame is all procedures together.
type TotalFrame struct {
	Calls  uint64  `json:"calls"` // total
	Rate   float64 `json:"calls_per_second"`
	Errors float64 `json:"errors_per_second"`
	In     float64 `json:"bytes_in_per_second"`
	Out    float64 `json:"bytes_out_per_second"`
	P50    float64 `json:"p50"` // of the interval; 0 without calls
	P99    float64 `json:"p99"`
}

// ProcessFrame is what the server takes of its host; 0 is not known.
type ProcessFrame struct {
	Threads int     `json:"threads"`
	CPU     float64 `json:"cpu"` // processors busy: 1.5 is one and a half
	Memory  uint64  `json:"memory"`
}

// ConnsFrame are the connections and the clients behind them.
type ConnsFrame struct {
	Open     int     `json:"open"`
	Clients  int     `json:"clients"`
	Accepted float64 `json:"accepted_per_second"`
	Evicted  uint64  `json:"evicted"` // totals
	Refused  uint64  `json:"refused"`
}

// ProcFrame is one procedure.
type ProcFrame struct {
	Name    string  `json:"name"`
	Program string  `json:"program"`
	Version uint32  `json:"version"`
	Calls   uint64  `json:"calls"` // total
	Rate    float64 `json:"calls_per_second"`
	Errors  float64 `json:"errors_per_second"`
	In      float64 `json:"bytes_in_per_second"`
	Out     float64 `json:"bytes_out_per_second"`
	P50     float64 `json:"p50"` // of the interval; 0 without calls
	P99     float64 `json:"p99"`
	Max     float64 `json:"max"` // since the start
}

// GateFrame is the way to the disk.
type GateFrame struct {
	Kind    string      `json:"kind"`
	Reason  string      `json:"reason"` // why Kind is not what was asked for; "" if it is
	Bound   int         `json:"bound"`  // of Inside
	Inside  int         `json:"inside"`
	Waiting int         `json:"waiting"`
	Memory  float64     `json:"memory_reads_per_second"` // that needed no disk
	Lanes   []LaneFrame `json:"lanes"`                   // those that were ever used
}

// LaneFrame is the way of one export's calls of one class.
type LaneFrame struct {
	Export  string  `json:"export"`
	Name    string  `json:"name"`
	Inside  int     `json:"inside"`
	Waiting int     `json:"waiting"`
	Entered float64 `json:"entered_per_second"`
	Refused float64 `json:"refused_per_second"`
	Waits   float64 `json:"waits_per_second"` // of those that entered, that had to wait
	Wait    float64 `json:"wait"`             // how long they did, on average
}

// LimitFrame is a bound and how much of it is taken.
type LimitFrame struct {
	Name  string `json:"name"`
	Bytes bool   `json:"bytes"`
	Used  uint64 `json:"used"`
	Max   uint64 `json:"max"` // 0: none
}

// LocalIOFrame is what clients of the same host do past the network.
type LocalIOFrame struct {
	Sessions int     `json:"sessions"`
	Files    int     `json:"files"` // lent out now
	Opened   float64 `json:"opened_per_second"`
	Opens    uint64  `json:"opened"` // totals
	Refused  uint64  `json:"refused"`
	Revoked  uint64  `json:"revoked"`
}

// CacheFrame is one cache.
type CacheFrame struct {
	Name   string  `json:"name"`
	Bytes  bool    `json:"bytes"`
	Used   uint64  `json:"used"`
	Max    uint64  `json:"max"` // 0: none
	Hits   float64 `json:"hits_per_second"`
	Misses float64 `json:"misses_per_second"`
}

// JobFrame is one job.
type JobFrame struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Items  uint64 `json:"items"`
	Total  uint64 `json:"total"` // 0: not known yet
	Bytes  uint64 `json:"bytes"`
	Failed uint64 `json:"failed"`
}

// ClientFrame is one client. Calls and bytes of clients with connections of NFS are counted
// one by one, on the connections that are open; of others, such as those of the file API,
// they are estimated from a sample, as P99 and File are.
type ClientFrame struct {
	Client   string  `json:"client"` // an address, or USER@ADDRESS
	User     string  `json:"user"`   // as whom it called last; "": not known
	Conns    int     `json:"connections"`
	InFlight int     `json:"in_flight"`
	Rate     float64 `json:"calls_per_second"`
	In       float64 `json:"bytes_in_per_second"`
	Out      float64 `json:"bytes_out_per_second"`
	P99      float64 `json:"p99"`       // of late; 0 without calls
	File     string  `json:"last_file"` // what it was last seen to use
}

// FileFrame is one file or directory, of which all is estimated from a sample of the calls.
type FileFrame struct {
	File   string  `json:"file"`        // its path, or its handle
	Client string  `json:"last_client"` // that was last seen to use it
	Rate   float64 `json:"calls_per_second"`
	In     float64 `json:"bytes_in_per_second"`
	Out    float64 `json:"bytes_out_per_second"`
	P99    float64 `json:"p99"` // of late
}

// SlowFrame is one slow call.
type SlowFrame struct {
	At     time.Time `json:"at"`
	Proc   string    `json:"procedure"`
	Client string    `json:"client"`
	XID    uint32    `json:"xid"` // 0: it has none
	Took   float64   `json:"took"`
	Waited float64   `json:"waited"`
	Path   string    `json:"path"` // what it was about, or its handle; "": not known
	Detail string    `json:"detail"`
}

// Point is what the charts show of one interval.
type Point struct {
	Seq     uint64             `json:"seq"` // from 1 on, without gaps
	At      time.Time          `json:"at"`
	Rates   map[string]float64 `json:"rates"` // calls a second, by the procedure's name, of those that had any
	P50     float64            `json:"p50"`
	P99     float64            `json:"p99"`
	In      float64            `json:"in"` // bytes a second
	Out     float64            `json:"out"`
	Threads int                `json:"threads"`
	Inside  int                `json:"inside"`
	Waiting int                `json:"waiting"`
	Conns   int                `json:"connections"`
	Clients int                `json:"clients"`
	Local   float64            `json:"localio"` // files lent, a second
}
