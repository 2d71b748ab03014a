package reqlog

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// DefaultQueue bounds the calls that wait to be written, if Options do not say. At
	// the bound a call is left out, and counted.
	DefaultQueue = 1024

	// DefaultLines bounds the lines a second, if Options do not say. Writing so many
	// takes a few hundredths of a processor. Further calls are left out, and counted.
	DefaultLines = 10_000
)

// Call is one call that was served, of any protocol. Empty and false fields are left out
// of its line, except times and bytes.
type Call struct {
	Procedure fmt.Stringer  // what was called; nil: it is unknown to the server
	Client    fmt.Stringer  // from where, such as a net.Addr
	User      string        // the caller, if users have names
	UID       uint32        // the caller, if users are numbers
	HasUID    bool          // UID is known
	XID       uint32        // the call's number
	HasXID    bool          // it has one
	Took      time.Duration // from the request's arrival to its reply
	Waited    time.Duration // the part of Took before work on it began
	BytesIn   int64         // of the request
	BytesOut  int64         // of the reply
	Status    fmt.Stringer  // what the answer says; nil: it says nothing
	Failed    bool          // it failed with an error of the protocol itself
	Object    Object        // what it was about; nil: not known
}

// Object is the file that a call was about, or whatever else it names.
type Object interface {
	// Attr is its path, as well as that is known when the line is written, and otherwise
	// its handle. It is called by the goroutine that writes.
	Attr() slog.Attr
}

// Options configure a Log. Handler is required.
type Options struct {
	// Handler gets a record of each call, from one goroutine: slog's text or
	// JSON handler, over a [File] or whatever else takes lines.
	Handler slog.Handler
	// Every is how many calls there are for each that is wanted; 0 and 1 want all.
	Every int
	Queue int // calls that may wait to be written; DefaultQueue if 0
	Lines int // a second, at most; DefaultLines if 0
	// Failed is told of the first error of Handler, and of the first after it
	// has worked again. It is called by the goroutine that writes.
	Failed func(error)
	Now    func() time.Time // time.Now if nil
	Rand   func() uint64    // a uniform random number, concurrently; math/rand's if nil
}

// Stats are counters of calls that a Log was given. They only grow.
type Stats struct {
	Written uint64
	LeftOut uint64 // because the queue was full, or beyond Options.Lines
	Failed  uint64 // that the Handler could not write
}

// Log is a sampled log of calls. All methods may be called concurrently.
type Log struct {
	o     Options
	below uint64 // a call is wanted if its random number is at most this
	queue chan entry
	stop  chan struct{}
	end   sync.WaitGroup
	once  sync.Once

	written, leftOut, failed atomic.Uint64

	// The goroutine's own.
	told   uint64    // how many of leftOut lines have told of
	window time.Time // when this second began
	lines  int       // in it
	ill    bool      // the last write failed
	record []slog.Attr
}

// entry is a call and when it was put.
type entry struct {
	Call
	at time.Time
}

// New makes a Log and starts its goroutine, which Close ends.
func New(o Options) *Log {
	o.Queue, o.Lines = cmp.Or(max(o.Queue, 0), DefaultQueue), cmp.Or(max(o.Lines, 0), DefaultLines)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Uint64
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	l := &Log{o: o, below: math.MaxUint64 / uint64(max(o.Every, 1)), queue: make(chan entry, o.Queue), stop: make(chan struct{})}
	l.end.Go(l.run)
	return l
}

// Wants says whether a call is to be Put. It is asked once for each call, and
// allocates nothing. A nil Log wants none.
func (l *Log) Wants() bool { return l != nil && l.o.Rand() <= l.below }

// Share is what Wants compares random numbers with, for a caller that has one: a call is
// wanted if its number, of 64 bits, is at most this. Of a nil Log it is 0.
func (l *Log) Share() uint64 {
	if l == nil {
		return 0
	}
	return l.below
}

// Put queues a call to be written, or counts it as left out. It neither waits nor
// allocates. After Close nothing is written.
func (l *Log) Put(c Call) {
	select {
	case l.queue <- entry{c, l.o.Now()}:
	default:
		l.leftOut.Add(1)
	}
}

// Stats returns the counters.
func (l *Log) Stats() Stats {
	return Stats{Written: l.written.Load(), LeftOut: l.leftOut.Load(), Failed: l.failed.Load()}
}

// Close writes what is in the queue and ends the goroutine. The Handler, and what
// is below it, are the caller's to close.
func (l *Log) Close() {
	l.once.Do(func() { close(l.stop) })
	l.end.Wait()
}

func (l *Log) run() {
	for {
		select {
		case e := <-l.queue:
			l.take(&e)
		case <-l.stop:
			for range len(l.queue) { // calls that come later are not written
				e := <-l.queue
				l.take(&e)
			}
			if n := l.leftOut.Load() - l.told; n > 0 {
				l.handle(l.o.Now(), "calls left out", slog.Uint64("left_out", n))
			}
			return
		}
	}
}

// take writes a call, if this second has room.
func (l *Log) take(e *entry) {
	if age := e.at.Sub(l.window); age >= time.Second || age < -time.Second {
		l.window, l.lines = e.at, 0
	}
	if l.lines >= l.o.Lines {
		l.leftOut.Add(1)
		return
	}
	l.lines++
	l.record = e.AppendAttrs(l.record[:0])
	leftOut := l.leftOut.Load()
	if leftOut > l.told {
		l.record = append(l.record, slog.Uint64("left_out", leftOut-l.told))
	}
	if l.handle(e.at, "call", l.record...) {
		l.written.Add(1)
		l.told = leftOut
	}
}

// AppendAttrs appends the attributes of c's line to a slice. Client and Status are text,
// since JSON would show the bytes of an address.
func (c *Call) AppendAttrs(to []slog.Attr) []slog.Attr {
	procedure := "unknown"
	if c.Procedure != nil {
		procedure = c.Procedure.String()
	}
	to = append(to, slog.String("procedure", procedure))
	if c.Object != nil {
		to = append(to, c.Object.Attr())
	}
	if c.Client != nil {
		to = append(to, slog.String("client", c.Client.String()))
	}
	if c.User != "" {
		to = append(to, slog.String("user", c.User))
	}
	if c.HasUID {
		to = append(to, slog.Uint64("uid", uint64(c.UID)))
	}
	if c.HasXID {
		to = append(to, slog.Uint64("xid", uint64(c.XID)))
	}
	to = append(to, slog.Duration("took", c.Took), slog.Duration("waited", c.Waited),
		slog.Int64("in", c.BytesIn), slog.Int64("out", c.BytesOut))
	if c.Status != nil {
		to = append(to, slog.String("status", c.Status.String()))
	}
	if c.Failed {
		to = append(to, slog.Bool("failed", true))
	}
	return to
}

// handle writes a line, and says whether it could.
func (l *Log) handle(at time.Time, what string, attrs ...slog.Attr) bool {
	r := slog.NewRecord(at, slog.LevelInfo, what, 0)
	r.AddAttrs(attrs...)
	err := l.o.Handler.Handle(context.Background(), r)
	if err != nil {
		l.failed.Add(1)
		if !l.ill {
			l.o.Failed(err)
		}
	}
	l.ill = err != nil
	return err == nil
}
