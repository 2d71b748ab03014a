package daemon

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/view"
	"github.com/nfsbox/nfsbox/oncrpc"
)

// slowLog tells the log and the live view of slow calls, without ever making them
// slower: what the log does not take at once is counted and left out.
type slowLog struct {
	log       *slog.Logger
	now       func() time.Time
	threshold atomic.Int64 // nanoseconds; 0: none
	queue     chan oncrpc.Served
	lost      atomic.Uint64 // not in the queue, for want of room
	count     atomic.Uint64 // all of them
	end       sync.WaitGroup
	view      *view.View // nil: there is none; set before there are calls

	// The goroutine's own.
	window time.Time // when this window began
	lines  int       // in it
	silent uint64    // calls that were left out since the last line
}

func newSlowLog(log *slog.Logger, now func() time.Time, threshold time.Duration) *slowLog {
	s := &slowLog{log: log, now: now, queue: make(chan oncrpc.Served, slowQueue)}
	s.set(threshold)
	s.end.Go(func() {
		for c := range s.queue {
			s.write(c)
		}
	})
	return s
}

// set changes the threshold; 0 is for none.
func (s *slowLog) set(d time.Duration) { s.threshold.Store(int64(d)) }

// observe is told of calls that took slowFloor or longer. It never waits. The view
// shows the slowest of all of them, whatever the threshold.
func (s *slowLog) observe(c oncrpc.Served) {
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
func (s *slowLog) write(c oncrpc.Served) {
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
	args := []any{slog.String("procedure", procedureOf(&c)), slog.String("client", clientOf(&c))}
	if c.HasUID {
		args = append(args, slog.Uint64("uid", uint64(c.UID)))
	}
	args = append(args, slog.Uint64("xid", uint64(c.XID)), slog.Duration("took", c.Took), slog.Duration("waited", c.Waited))
	if s.silent > 0 {
		args = append(args, slog.Uint64("left_out", s.silent))
		s.silent = 0
	}
	s.log.Warn("slow call", args...)
}

// procedureOf is what was called.
func procedureOf(c *oncrpc.Served) string {
	if c.Proc == nil {
		return "unknown"
	}
	return c.Proc.String()
}

// clientOf is who called, as text: a log in JSON would show the bytes of an
// address.
func clientOf(c *oncrpc.Served) string {
	if c.Client == nil {
		return ""
	}
	return c.Client.String()
}

// close ends the log; nothing may be observed any more.
func (s *slowLog) close() {
	close(s.queue)
	s.end.Wait()
}
