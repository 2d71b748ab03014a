package ops

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/reqlog"
	"github.com/nfsbox/nfsbox/internal/server/view"
)

// slowLog tells the log and the live view of slow calls, without ever making them
// slower: what the log does not take at once is counted and left out.
type slowLog struct {
	log       *slog.Logger
	now       func() time.Time
	threshold atomic.Int64 // nanoseconds; 0: none
	queue     chan reqlog.Call
	lost      atomic.Uint64 // not in the queue, for want of room
	count     atomic.Uint64 // all of them
	stop      chan struct{}
	end       sync.WaitGroup
	view      *view.View // nil: there is none; set before there are calls

	// The goroutine's own.
	window time.Time // when this window began
	lines  int       // in it
	silent uint64    // calls that were left out since the last line
}

func newSlowLog(log *slog.Logger, now func() time.Time, threshold time.Duration) *slowLog {
	s := &slowLog{log: log, now: now, queue: make(chan reqlog.Call, slowQueue), stop: make(chan struct{})}
	s.set(threshold)
	s.end.Go(s.run)
	return s
}

func (s *slowLog) run() {
	for {
		select {
		case c := <-s.queue:
			s.write(c)
		case <-s.stop:
			for range len(s.queue) { // what comes later is not logged
				s.write(<-s.queue)
			}
			return
		}
	}
}

// set changes the threshold; 0 is for none.
func (s *slowLog) set(d time.Duration) { s.threshold.Store(int64(d)) }

// observe is told of calls that took slowFloor or longer. It never waits. The view
// shows the slowest of all of them, whatever the threshold.
func (s *slowLog) observe(c reqlog.Call) {
	if s.view != nil && s.view.AmongSlowest(c.Took) {
		s.view.Slow(slowCall(s.now(), &c))
	}
	if t := s.threshold.Load(); t == 0 || int64(c.Took) < t {
		return
	}
	s.count.Add(1)
	select {
	case s.queue <- c:
	default:
		s.lost.Add(1)
	}
}

// write tells of one call, if the window has room.
func (s *slowLog) write(c reqlog.Call) {
	now := s.now()
	if now.Sub(s.window) >= slowWindow || now.Before(s.window) {
		s.window, s.lines = now, 0
	}
	s.silent += s.lost.Swap(0)
	if s.lines >= slowLines {
		s.silent++
		return
	}
	s.lines++
	attrs := c.AppendAttrs(nil)
	if s.silent > 0 {
		attrs = append(attrs, slog.Uint64("left_out", s.silent))
		s.silent = 0
	}
	s.log.LogAttrs(context.Background(), slog.LevelWarn, "slow call", attrs...)
}

// close writes what is in the queue, and ends the log. A call that outlives the server,
// as one in a directory that is dead may, is not told of any more.
func (s *slowLog) close() {
	close(s.stop)
	s.end.Wait()
}

// spoken divides "NFSPROC3_READ" into what people say: NFS, READ.
func spoken(proc string) (program, name string) {
	program, name, ok := strings.Cut(proc, "_")
	if !ok {
		return "", proc
	}
	program, _, _ = strings.Cut(program, "PROC")
	return program, name
}

// slowCall is a slow call in the words of the view.
func slowCall(at time.Time, c *reqlog.Call) view.SlowCall {
	x := view.SlowCall{At: at, Proc: "unknown", XID: c.XID, Took: c.Took, Waited: c.Waited, Detail: c.User}
	if c.Procedure != nil {
		_, x.Proc = spoken(c.Procedure.String())
	}
	if c.Client != nil {
		x.Client = c.Client.String()
	}
	if o, ok := c.Object.(*object); ok {
		x.Path = o.label()
	}
	return x
}
