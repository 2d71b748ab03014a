package oncrpc

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/xdr"
)

// ClientOptions says how a client reaches its server, and how long it tries.
type ClientOptions struct {
	// Dial makes a connection. It is called again whenever one was lost, so
	// that names are resolved again; its context ends after 30 s, and when
	// the client is closed. Required.
	Dial func(ctx context.Context) (net.Conn, error)
	// Secure, if set, turns a fresh connection into one that is protected:
	// the place of STARTTLS (RFC 9289). If it fails, Secure has closed
	// nothing; the client closes the connection.
	Secure func(ctx context.Context, c net.Conn) (net.Conn, error)
	// FirstXID begins the sequence of transaction numbers. It ought to be
	// random: servers remember the numbers of clients that came before.
	FirstXID uint32
	// Timeout is how long the first try waits for its reply; each try that
	// timed out adds as much to the next, as nfs(5) has it. 0 is
	// [DefaultTimeout].
	Timeout time.Duration
	// Retries says with Timeout how long a call goes on: Timeout x (Retries+1) is
	// its patience, waiting for connections included. 0 is [DefaultRetries]. Until
	// then a repeatable call is sent again, with the same number and on another
	// connection, after each time-out and each lost connection, however many there
	// are. With a negative number nothing is sent again that has been sent.
	Retries int
	// Hard makes a call go on, however often it takes, until its context ends:
	// neither Retries nor its patience count, nor, once the server has
	// answered, DialTries. What must not be repeated is not repeated for it, and
	// an [ErrBadReply] ends it as it ends others.
	Hard bool
	// Resend has calls that are not repeatable sent again as well, with the
	// same number, as a server's duplicate request cache wants it. The caller
	// judges replies that are Resent.
	Resend bool
	// DialTries is how many failed dials a call waits for before it fails. 0
	// is [DefaultDialTries] until the server has answered for the first time;
	// from then on the patience of a call is the only bound, so that a server
	// may be away for a while.
	DialTries int
	// Conns is the most connections at once, up to [MaxConns]; 0 is 1. There is
	// one as long as one is enough.
	Conns int
	// Log receives what a user would want to know of a server that does not
	// answer; nil is silence.
	Log *slog.Logger
	// Silent, if set, is called when a server has sent nothing for [SilentAfter]
	// while calls wait for it, and again when it sends: once each, however many
	// calls there are. It is called once more, with a new Until, if calls still wait
	// SilentAfter after Until. Questions ([Client.CallOnce]) are not waited for, and do
	// not count. It is called by one goroutine at a time, and holds up no
	// call. Close waits for it: it must not close the client. A client that is
	// closed does not call it.
	Silent func(Silence)
	// MaxReply is how many bytes a reply may have beside those that its call asked for
	// (see [xdr.Asker]); 0 is [DefaultMaxReply]. A longer one closes the connection.
	MaxReply int

	nagle bool // leave TCP_NODELAY off: tests prove that we do not depend on it
}

// Silence is a time in which a server has sent nothing although calls waited for it.
type Silence struct {
	Server string    // the address of the latest connection; "" if there was none yet
	Since  time.Time // of the last that it sent, or of the first call after all were over
	// Until is when the first of the calls that wait gives up; zero if none does.
	Until time.Time
	Over  bool // it sends again
}

// Client calls the programs of one server, over one connection or several. All
// methods may be called concurrently.
type Client struct {
	o ClientOptions
	hub

	patience time.Duration   // of a call
	ctx      context.Context // of the client's own goroutines; ends with Close
	stop     context.CancelFunc
	room     chan struct{} // a token for each slot that was promised to a waiting caller

	// Guarded by hub.mu.
	stats     Stats
	attempt   *attempt      // the dial under way
	growAfter time.Duration // no dial for more connections before
	failures  int           // dials in a row that led to nothing
	server    string        // the address of the latest connection
	episode   episode
	outage    outage
	free      []*call // calls to be used again
	inFlight  int     // slots taken
	questions int     // of them, those of CallOnce
	promised  int     // slots kept for callers that have waited
	outside   int     // callers that wait for a slot and were promised none yet
	timer     *time.Timer
	ticking   bool
	procs     map[procKey]*procCounters
	lastProc  *procCounters // of the call before
}

// Stats are counters of a client. All but InFlight, Conns and Buffers only grow.
type Stats struct {
	Calls       uint64 // calls made
	Replies     uint64 // of any status
	Retransmits uint64 // sent again after they had been sent
	Timeouts    uint64 // tries that got no reply in time
	Cancelled   uint64 // calls that their caller gave up
	Dials       uint64 // connections made
	Reconnects  uint64 // of them, those made when there was none any more
	DialErrors  uint64
	Late        uint64 // replies discarded because no call waited any more
	Stray       uint64 // replies discarded because no call had ever been made
	BytesIn     uint64
	BytesOut    uint64
	InFlight    int // calls under way
	Conns       int // connections open
	Buffers     int // lent out: the connections' read buffers, and replies not yet released
}

// attempt is one dial, for which any number of calls wait. It goes on when they have all
// left, so that the next call finds a connection.
type attempt struct {
	lane lane
	done chan struct{} // closed at the end
	err  error
}

// episode is a time in which the server does not answer. Its beginning and its end are
// logged. Guarded by Client.mu.
type episode struct {
	since  time.Duration // when the server first failed to answer; 0: it answers
	told   bool          // that was logged
	notes  []note        // messages to be delivered
	teller bool          // a goroutine delivers them
}

// note is one message for the log, or, if silent, a silence for ClientOptions.Silent.
type note struct {
	level   slog.Level
	text    string
	attrs   [2]slog.Attr
	silence Silence
	silent  bool
}

// outage is what the clock knows of a server that sends nothing. Guarded by
// Client.mu.
type outage struct {
	heard uint64        // bytes that had come at the last tick
	since time.Duration // none have come since, or no call waited before
	next  time.Duration // when it is told, or told again
	told  bool
}

// Reply is what a call's results borrow from. Release gives it back; the
// results' slices are dead from then on. Release it once; the zero Reply may be
// released, too. Replies that have come together share memory, up to 16 KiB, which
// is free when the last of them is released.
type Reply struct {
	Verf      Auth          // the server's verifier, borrowed
	Took      time.Duration // from this try's sending to its reply; without the wait before
	Resent    bool          // it was sent more than once: the answer may be that of a second execution
	rec, tail *bufpool.Buffer
}

// Release gives the reply's memory back.
func (r Reply) Release() {
	if r.rec != nil {
		r.rec.Release()
	}
	if r.tail != nil {
		r.tail.Release()
	}
}

// NewClient returns a client. It dials when it is first called, and holds no
// goroutine before. Close it after use.
func NewClient(o ClientOptions) *Client {
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Retries = cmp.Or(o.Retries, DefaultRetries)
	o.Timeout = min(o.Timeout, maxPatience)
	o.Conns = min(max(o.Conns, 1), MaxConns)
	o.MaxReply = cmp.Or(o.MaxReply, DefaultMaxReply)
	c := &Client{o: o, room: make(chan struct{}, maxInFlight), procs: make(map[procKey]*procCounters)}
	c.owner, c.born, c.next, c.maxReply = c, time.Now().Add(-tickEvery), o.FirstXID, o.MaxReply
	c.patience = o.patience()
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// patience is how long a call goes on.
func (o *ClientOptions) patience() time.Duration {
	again := int64(max(o.Retries, 0))
	if o.Hard || again >= int64(maxPatience/o.Timeout) {
		return maxPatience
	}
	return o.Timeout * time.Duration(again+1)
}

// Patience is how long a soft call goes on; a hundred years if calls are hard.
func (c *Client) Patience() time.Duration { return c.patience }

// Stats returns the client's counters.
func (c *Client) Stats() Stats {
	c.mu.Lock()
	s := c.stats
	s.InFlight, s.Conns, s.Late, s.Stray = c.inFlight, len(c.conns), c.late, c.stray
	c.mu.Unlock()
	s.BytesIn, s.BytesOut = c.bytesIn.Load(), c.bytesOut.Load()
	s.Buffers = c.pool.Outstanding()
	return s
}

// counters finds the counters of p, or makes them; nil above maxProcs. Client.mu is held.
func (c *Client) counters(p *xdr.Proc) *procCounters {
	if c.lastProc != nil && c.lastProc.Proc == p {
		return c.lastProc
	}
	key := procKey{p.Program, p.Version, p.Number}
	pc := c.procs[key]
	if pc == nil {
		if len(c.procs) == maxProcs {
			return nil
		}
		pc = &procCounters{ProcStats: ProcStats{Proc: p}}
		c.procs[key] = pc
	}
	c.lastProc = pc
	return pc
}

// count adds a call that has ended. Client.mu is held.
func (s *procCounters) count(pc *call, err error) {
	s.Calls++
	if err != nil {
		s.Errors++
	}
	s.Retransmits += uint64(pc.retransmits)
	s.Timeouts += uint64(pc.timeouts)
	s.BytesOut += pc.bytesOut
	s.BytesIn += pc.bytesIn
	if pc.firstAt > 0 {
		s.queued.Duration(pc.firstAt - pc.began)
	}
	if took := pc.took(); took > 0 {
		s.latency.Duration(took)
	}
}

// Procs returns the counters of the procedures that have been called, in the
// order of their numbers.
func (c *Client) Procs() []ProcStats {
	c.mu.Lock()
	all := make([]ProcStats, 0, len(c.procs))
	histograms := make([]*procCounters, 0, len(c.procs))
	for _, pc := range c.procs {
		histograms = append(histograms, pc)
	}
	slices.SortFunc(histograms, func(a, b *procCounters) int {
		x, y := a.Proc, b.Proc
		return cmp.Or(cmp.Compare(x.Program, y.Program), cmp.Compare(x.Version, y.Version), cmp.Compare(x.Number, y.Number))
	})
	for _, pc := range histograms {
		all = append(all, pc.ProcStats)
	}
	c.mu.Unlock()
	for i, pc := range histograms {
		all[i].Queued, all[i].Latency = pc.queued.Snapshot(), pc.latency.Snapshot()
	}
	return all
}
