package oncrpc

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/bufpool"
	"github.com/nfsbox/nfsbox/xdr"
)

// ClientOptions says how a client reaches its server.
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
	// Timeout is how long one try waits for its reply; 0 is [DefaultTimeout].
	Timeout time.Duration
	// Retries is how often a repeatable call is sent again, with the same
	// number and on a new connection, after a time-out or a lost connection.
	// 0 is [DefaultRetries], a negative number is none.
	Retries int
	// Hard makes a call go on, however often it takes, until its context ends:
	// Retries and DialTries do not count. What must not be repeated is not
	// repeated for it.
	Hard bool
	// Resend has calls that are not repeatable sent again as well, with the
	// same number, as a server's duplicate request cache wants it. The caller
	// judges replies that are Resent.
	Resend bool
	// DialTries is how many failed dials a call waits for before it fails;
	// 0 is [DefaultDialTries].
	DialTries int
	// Conns is the most connections at once, up to [MaxConns]; 0 is 1. There is
	// one as long as one is enough.
	Conns int
	// Log receives what a user would want to know of a server that does not
	// answer; nil is silence.
	Log *slog.Logger
	// MaxReply is the longest reply, in bytes; 0 is [DefaultMaxReply].
	MaxReply int

	nagle bool // leave TCP_NODELAY off, to prove that it is not what saves us
}

// Client calls the programs of one server, over one connection at a time. All
// methods may be called concurrently.
type Client struct {
	o    ClientOptions
	pool bufpool.Pool
	ctx  context.Context // of the client's own goroutines; ends with Close
	stop context.CancelFunc
	room chan struct{}  // holds a token for each call under way
	wg   sync.WaitGroup // the client's own goroutines; added to under mu, before closed

	bytesIn, bytesOut atomic.Uint64

	mu        sync.Mutex // guards what follows, and what is marked so in call and clientConn
	closed    bool
	conn      *clientConn   // takes new calls; nil: dial
	conns     []*clientConn // conn, and retired ones that still owe replies
	attempt   *attempt      // the dial under way
	failures  int           // dials in a row that led to nothing
	next      uint32        // the next transaction number
	issued    uint64        // how many there have been
	slots     [slotCount]*call
	free      []*call // calls to be used again
	inFlight  int
	timer     *time.Timer
	ticking   bool
	now       time.Time // as of the last tick
	idleSince time.Time // when ticks found nothing to do; zero: they have
	stats     Stats
}

// Stats are counters of a client. All but InFlight, Conns and Buffers only grow.
type Stats struct {
	Calls       uint64 // calls made
	Replies     uint64 // of any status
	Retransmits uint64 // sent again after they had been sent
	Timeouts    uint64 // tries that got no reply in time
	Cancelled   uint64 // calls that their caller gave up
	Dials       uint64 // connections made
	Reconnects  uint64 // of them, after the first
	DialErrors  uint64
	Late        uint64 // replies discarded because nobody waited any more
	Stray       uint64 // replies discarded because nobody had ever called
	BytesIn     uint64
	BytesOut    uint64
	InFlight    int // calls under way
	Conns       int // connections open
	Buffers     int // lent out: the connections' read buffers, and replies not yet released
}

// NewClient returns a client. It dials when it is first called, and holds no
// goroutine before. Close it after use.
func NewClient(o ClientOptions) *Client {
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Retries = cmp.Or(o.Retries, DefaultRetries)
	o.DialTries = cmp.Or(o.DialTries, DefaultDialTries)
	o.MaxReply = cmp.Or(o.MaxReply, DefaultMaxReply)
	c := &Client{o: o, next: o.FirstXID, room: make(chan struct{}, maxInFlight)}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// Reply is what a call's results borrow from. Release gives it back; the
// results' slices are dead from then on. Release it once; the zero Reply may be
// released, too.
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

// Call calls p with args as auth and decodes the results into res. When it
// returns, nothing touches args, res or the bulk buffers of either any more,
// whatever happened. What res has borrowed is good until the Reply is released;
// with an error, the Reply is zero.
//
// Errors are an [*AcceptError] or a [*DeniedError] if the server answered so;
// ErrTimeout, ErrClosed, ErrNoConnection, what ended the connection, or ctx's;
// an error of package xdr if something did not encode or decode. See
// [ErrUnknownOutcome] for what they mean for a call that is not repeatable.
//
// With [xdr.BulkArgs] and [xdr.BulkResult] the bulk is written from, and read
// to, where it is. A result whose bulk is longer than its buffer closes the
// connection.
func (c *Client) Call(ctx context.Context, p *xdr.Proc, auth Auth, args xdr.Appender, res xdr.Unmarshaler) (Reply, error) {
	if err := auth.check(); err != nil {
		return Reply{}, fmt.Errorf("oncrpc: %v: %w", p, err)
	}
	select {
	case c.room <- struct{}{}:
	case <-ctx.Done():
		return Reply{}, fmt.Errorf("oncrpc: %v: waiting for a free slot: %w", p, ctx.Err())
	}
	pc := c.open()
	pc.ctx, pc.proc, pc.auth, pc.args, pc.res = ctx, p, auth, args, res
	pc.bulkArgs, _ = args.(xdr.BulkArgs)
	pc.bulkRes, _ = res.(xdr.BulkResult)
	r, err := c.exchange(pc)
	c.done(pc)
	<-c.room
	return r, err
}

// Close ends the client: calls under way return ErrClosed, or an unknown
// outcome. It waits for the client's own goroutines, and may be called twice.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	for len(c.conns) > 0 {
		c.conns[0].fail(ErrClosed)
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	c.stop()
	c.wg.Wait()
	return nil
}

// Stats returns the client's counters.
func (c *Client) Stats() Stats {
	c.mu.Lock()
	s := c.stats
	s.InFlight, s.Conns = c.inFlight, len(c.conns)
	c.mu.Unlock()
	s.BytesIn, s.BytesOut = c.bytesIn.Load(), c.bytesOut.Load()
	s.Buffers = c.pool.Outstanding()
	return s
}
