package ops

import (
	"time"

	"github.com/nfsbox/nfsbox/internal/server/fileapi"
	"github.com/nfsbox/nfsbox/internal/server/iogate"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/server/object/dir"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
)

// Scrape is what the server's parts have counted, at one time. Its caller fills the
// exported fields; the counts of the logs and of the process are added here.
type Scrape struct {
	Server  nfsserver.Stats
	Replies oncrpc.ReplyCacheStats
	Gate    iogate.Snapshot
	Leaving int               // directories out of service in which calls are still at work
	API     *fileapi.Snapshot // nil: there is none
	Store   *dir.Snapshot     // nil: there is none

	dirs    map[string]localfs.Snapshot
	far     map[string]Upstream
	slow    uint64
	lost    logLosses
	process process
}

// AddDirectory adds the counts of a directory. If it is open more than once, with other
// handles, its counts are added up.
func (s *Scrape) AddDirectory(path string, more localfs.Snapshot) {
	if s.dirs == nil {
		s.dirs = make(map[string]localfs.Snapshot)
	}
	sum := s.dirs[path]
	addDirectory(&sum, &more)
	s.dirs[path] = sum
}

// AddUpstream adds the counts of another server that an export stands for. If several do, they are added up.
func (s *Scrape) AddUpstream(from string, more Upstream) {
	if s.far == nil {
		s.far = make(map[string]Upstream)
	}
	sum := s.far[from]
	addUpstream(&sum, &more)
	s.far[from] = sum
}

// complete adds what this package counts itself.
func (s *Scrape) complete(l *Logs) *Scrape {
	s.slow, s.lost, s.process = l.slow.count.Load(), l.losses(), ourProcess()
	s.Server.Procs = together(s.Server.Procs)
	return s
}

// together adds up what has one name: the server counts a procedure once for each
// transport. Calls over UDP are few (MOUNT, the lock manager, the port mapper), and
// their transport is not worth a label.
func together(procs []oncrpc.ProcServerStats) []oncrpc.ProcServerStats {
	type name struct {
		proc    string
		version uint32
	}
	rows := make(map[name]int, len(procs))
	out := procs[:0]
	for i := range procs {
		p := &procs[i]
		n := name{p.Proc.Name, p.Proc.Version}
		at, ok := rows[n]
		if !ok {
			rows[n] = len(out)
			out = append(out, *p)
			continue
		}
		sum := &out[at]
		sum.Calls += p.Calls
		sum.Errors += p.Errors
		sum.BytesIn += p.BytesIn
		sum.BytesOut += p.BytesOut
		sum.Latency.Add(p.Latency)
	}
	return out
}

// addDirectory adds up what is told of directories.
func addDirectory(sum, s *localfs.Snapshot) {
	sum.Open += s.Open
	sum.MaxOpen += s.MaxOpen
	sum.Dirty += s.Dirty
	sum.Hits += s.Hits
	sum.Misses += s.Misses
	sum.Evicted += s.Evicted
	sum.Idle += s.Idle
	sum.Syncs += s.Syncs
	sum.Shared += s.Shared
	sum.Cleaned += s.Cleaned
	sum.Verifiers += s.Verifiers
	sum.NowaitHits += s.NowaitHits
	sum.NowaitMisses += s.NowaitMisses
	sum.AsCaller += s.AsCaller
	sum.Busy += s.Busy
}

// process is what the server takes of its host; 0 is unknown.
type process struct {
	threads int
	cpu     time.Duration // total, of all processors
	memory  uint64        // resident bytes
}
