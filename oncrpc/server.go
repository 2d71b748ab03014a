package oncrpc

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/oncrpc/internal/budget"
	"github.com/nfsbox/nfsbox/xdr"
)

// Service is one version of a program and what serves it: Handlers[i] serves
// Program.Procs[i]. A procedure with a nil handler, or beyond the end of Handlers, is
// answered PROC_UNAVAIL. Procedure 0 always answers.
//
// Once[i] says that a second execution of Program.Procs[i] could do harm. With a [Replies]
// such a procedure is executed once, and a retransmission gets the same reply.
type Service struct {
	Program  *xdr.Program
	Handlers []Handler
	Once     []bool // may be shorter than Handlers
}

// Handler serves one call. It may block without holding up others. It replies at most
// once, and returns nil if it has replied or the answer is void. An error becomes the
// answer: GARBAGE_ARGS if it says that the arguments were no good (see [ErrGarbageArgs]),
// a denial if it is an [*AuthError], no reply at all if it is [ErrDrop]. Anything else, or
// a panic, is SYSTEM_ERR and goes to the log.
//
// ctx ends when the server is closed or the connection is lost. For procedures that a
// [Replies] covers the connection does not matter: what has begun is finished.
type Handler func(ctx context.Context, c *Call) error

// ServerOptions bounds a server. Zero values are the defaults of the constants
// that are named like the fields.
type ServerOptions struct {
	MaxConns        int   // connections at once; a client alone has half of them
	MaxRecord       int   // bytes of a request
	MaxCallsPerConn int   // calls of one connection under way
	MaxCalls        int   // calls of all connections under way, beyond one of each
	MaxRequestBytes int64 // memory of the requests of all connections; enough for two of MaxRecord at least
	IdleTimeout     time.Duration
	HeadTimeout     time.Duration
	WriteTimeout    time.Duration

	// Peer, if set, returns the far end of each connection, for Call.Remote. It is for a
	// server that knows more of a client than its address: see [UserAddr]. It may not read
	// or write. Its listener accepts no other connection meanwhile. Of a datagram nc is nil.
	Peer func(nc net.Conn, remote, local net.Addr) net.Addr
	// NewConn, if set, is called for each connection before it is read. Call.State is
	// what it returns. An error closes the connection.
	NewConn func(remote, local net.Addr) (state any, err error)
	// Admit, if set, is asked for what NewConn has returned: may the server keep anything
	// for that client, such as a reply to be sent again or a large request? All others
	// together have a small share of memory (strangerBytes), and no reply of theirs is
	// kept. It is called often, and must not wait. nil admits every client.
	Admit func(state any) bool
	// Secure, if set, turns a connection into a protected one, after the server has
	// answered an AUTH_TLS probe with STARTTLS (RFC 9289, section 4.1). Without it such
	// probes are denied, and clients go on in the clear if they may.
	Secure func(net.Conn) (net.Conn, error)
	// Replies remembers the replies of procedures that are Once. If it is nil a
	// retransmission is executed again. Servers may share one.
	Replies Replies
	// Observe, if set, is told of each call that took Slow or longer, and of those that
	// Sample picks. The goroutine that served the call runs it before the reply leaves, so
	// it must not wait. It is not called after the server's end.
	Observe func(Served)
	// Slow is for Observe. 0: no call is slow.
	Slow time.Duration
	// Sample, if set, is called once for each call and says whether to tell Observe of it.
	// Many goroutines call it at once. It must be fast, and allocate nothing.
	Sample func() bool
	// Log receives what no client can be told: panics of handlers, their errors that
	// became SYSTEM_ERR, failing listeners. nil discards.
	Log *slog.Logger

	nagle  bool          // leave TCP_NODELAY off: tests prove that we do not depend on it
	linger time.Duration // lingerTime
	drain  time.Duration // drainWriteTime
}

func (o *ServerOptions) defaults() {
	o.MaxConns = cmp.Or(o.MaxConns, DefaultMaxConns)
	o.MaxRecord = cmp.Or(o.MaxRecord, DefaultMaxRecord)
	o.MaxCallsPerConn = cmp.Or(o.MaxCallsPerConn, DefaultMaxCallsPerConn)
	o.MaxCalls = cmp.Or(o.MaxCalls, DefaultMaxCalls)
	o.MaxRequestBytes = cmp.Or(o.MaxRequestBytes, DefaultMaxRequestBytes)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, DefaultIdleTimeout)
	o.HeadTimeout = cmp.Or(o.HeadTimeout, DefaultHeadTimeout)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, DefaultWriteTimeout)
	o.linger = cmp.Or(o.linger, lingerTime)
	o.drain = cmp.Or(o.drain, drainWriteTime)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// Server serves programs on any number of listeners. All methods may be called
// concurrently.
type Server struct {
	o              ServerOptions
	services       []binding
	pool           bufpool.Pool
	budget         *budget.Budget
	strangerBudget *budget.Budget // of clients that are not admitted
	calls          sync.Pool      // of *Call
	epoch          time.Time      // when its clock began
	ctx            context.Context
	stop           context.CancelFunc
	wg             sync.WaitGroup // a count for each connection; added to under mu, before ending
	stats          serverCounters
	underWay       atomic.Int64 // calls of connections, read and not yet answered

	mu        sync.Mutex
	ending    bool
	listeners map[*net.Listener]struct{} // some types of listeners cannot be keys
	conns     map[*serverConn]struct{}
	shares    map[string]int // conns by ShareOf
	strangers int            // how many of conns were not admitted when they came
	packets   map[*packetConn]struct{}
}

// binding is a service at work.
type binding struct {
	Service
	counters []procServerCounters // by procedure
}

// admits reports whether anything may be kept for a client.
func (s *Server) admits(state any) bool { return s.o.Admit == nil || s.o.Admit(state) }

// peer is the far end of a connection, or of a datagram if nc is nil.
func (s *Server) peer(nc net.Conn, remote, local net.Addr) net.Addr {
	if s.o.Peer == nil {
		return remote
	}
	return s.o.Peer(nc, remote, local)
}

// clock is the time since the server was made.
func (s *Server) clock() time.Duration { return time.Since(s.epoch) }

func (s *Server) closing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending
}

// sleep returns false if the server was closed meanwhile.
func (s *Server) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return !s.closing()
	case <-s.ctx.Done():
		return false
	}
}

// Call is one call at the server. It, and everything borrowed from it, is the
// handler's until the handler returns.
type Call struct {
	XID    uint32
	Proc   *xdr.Proc
	Auth   Auth        // the credential, borrowed
	Verf   Auth        // the verifier, borrowed
	Args   xdr.Decoder // the arguments
	Remote net.Addr
	Local  net.Addr
	State  any // of the connection, from NewConn

	s         *Server
	to        route           // where the call came from
	rec       *bufpool.Buffer // the request
	arrived   time.Duration   // on the server's clock
	began     time.Duration   // when the handler did; 0: it has not, or there is no Observe
	allowance budget.Allowance
	handler   Handler
	counters  *procServerCounters // of the procedure; nil: of no known one
	once      once
	reply     answered
}

// once is what a call knows of the server's Replies.
type once struct {
	is     bool          // the procedure must not be executed twice
	client ClientReplies // nil: the server has no Replies
	serial uint64        // of the connection, or the datagram
	entry  Entry         // claimed, and to be settled
	forget bool
}

// answered is the reply of a call, until it is put in the queue.
type answered struct {
	buf   *bufpool.Buffer // the record, without the bulk; nil: none yet
	at    int             // where in it the bulk belongs
	bulk  []byte          // nil: none
	owner Releaser        // of bulk
}

// route leads back to where a call came from: a connection, or a datagram.
type route interface {
	Asker
	// context is for handlers. It ends when no reply can get there any more.
	context() context.Context
	// enqueue takes a call's reply, or none, and ends the call.
	enqueue(answered)
	// flush sends what was enqueued, unless another goroutine is about to.
	flush()
}

// newCall returns a call that came by to, without its request.
func (s *Server) newCall(to route) *Call {
	c, _ := s.calls.Get().(*Call)
	if c == nil {
		c = &Call{}
	}
	c.s, c.to = s, to
	return c
}

// free ends the use of c: it gives back the request and its memory.
func (c *Call) free() {
	s := c.s
	c.rec.Release()
	c.allowance.Put()
	*c = Call{}
	s.calls.Put(c)
}

// serverConn is one connection of a server. One goroutine reads calls (server_read.go),
// workers execute them (server_work.go), and their replies gather in out. A goroutine that
// finds no writer writes all of them in one write (server_conn.go).
type serverConn struct {
	s              *Server
	remote, local  net.Addr
	state          any
	ctx            context.Context // of the handlers
	cancel         context.CancelFunc
	stop           chan struct{}  // closed when reading has to end
	client         ClientReplies  // nil: the server has no Replies; set by serve, under mu
	serial         uint64         // greater than that of earlier connections
	share          string         // ShareOf remote
	stranger       bool           // not admitted when it came; guarded by Server.mu
	memory         *budget.Client // the client, in Server.budget
	strangerMemory *budget.Client // and in Server.strangerBudget
	opened         time.Time

	bytesIn, bytesOut atomic.Uint64
	draining          atomic.Bool // no more calls are read; set under mu

	// The reader's.
	r         recordReader
	arrived   time.Duration // when the last bytes did, on the server's clock
	secured   bool
	began     time.Time         // when the record that is arriving began, and as much later as it waited for memory; zero: none has
	receiving *budget.Allowance // of that record; nil: it has none yet

	mu       sync.Mutex
	fewer    sync.Cond // calls has fallen, or the connection is over
	nc       net.Conn
	err      error     // why the connection is over
	eof      bool      // the client has closed its side
	calls    int       // read, and the reply not yet written
	total    uint64    // read
	active   time.Time // when something was last read or answered
	out      *batch    // replies that wait
	waiting  int       // how many
	flushing bool
	ready    []*Call // from taken on: read, and not yet begun
	taken    int
	pending  bool   // a worker is on its way
	worker   func() // work; made once, so that starting a worker does not allocate
	spare    *batch // becomes out while out is written
}

// packetConn is a socket of datagrams. Each is one call, or one reply. A client sends a
// call again if it or its reply was lost (RFC 5531, section 5).
type packetConn struct {
	s       *Server
	pc      net.PacketConn
	stop    chan struct{} // closed when reading has to end
	running chan struct{} // holds a token for each call under way

	mu     sync.Mutex
	shares map[string]int // guarded by mu; calls under way, by ShareOf; "": of clients that are not admitted
	calls  int            // guarded by mu; calls under way, of all
}

// Replies remembers the replies of procedures that must not be executed twice
// ([Service].Once): a duplicate request cache (RFC 1813, section 4.5). Package
// replycache has one. All methods may be called concurrently.
//
// No method may wait for a call. None may call an [Asker] while it holds a lock that the
// same method of another client takes.
type Replies interface {
	// Serial returns a number that rises with each call. The server takes one for
	// each connection when it accepts it: the higher number is the newer connection.
	Serial() uint64
	// Client returns what is remembered of the client at remote. The server calls
	// Release once, when the connection or the datagram is over.
	Client(remote net.Addr) ClientReplies
	// Stats returns the counters.
	Stats() ReplyCacheStats
}

// ClientReplies is what a [Replies] remembers of one client.
type ClientReplies interface {
	// Claim decides what becomes of a call that came by to. serial is that of its
	// connection or datagram.
	Claim(c *Claim, to Asker, serial uint64) (Verdict, Entry)
	// Leave ends the calls that to has joined, since its connection is lost: they do not
	// wait for the goroutines that execute them. For each it calls to.Unanswered.
	Leave(to Asker)
	// Release ends the use of this client.
	Release()
}

// Claim is a call before its handler runs, as a [Replies] sees it. The fields are
// [Call]'s; XID, Proc, Auth and Args tell one call from another.
type Claim Call

// Verdict is what becomes of a call that may have been made before.
type Verdict uint8

const (
	// Execute says that the call is new. The server calls Remember or Forget of its Entry,
	// once.
	Execute Verdict = iota
	// Replay says that it was answered before. Claim has given the reply to [Claim.Replay].
	Replay
	// Joined says that another goroutine executes it, and answers the newest asker. Claim
	// has called [Claim.PassOn], and Unanswered of the asker that gets no reply for it.
	Joined
)

// Entry is a call under way in the memory of a [Replies].
type Entry interface {
	// Remember keeps a copy of the reply: the three parts in a row. It returns the asker
	// that gets the reply, or nil if that is the one that claimed the call.
	Remember(head, bulk, tail []byte) Asker
	// Forget keeps no reply: a retransmission will be executed. It returns what
	// Remember returns.
	Forget() Asker
}

// Asker is where a call came from: a connection or a datagram. A [Replies] knows one
// from another by comparing the interface values.
type Asker interface {
	// Gone reports whether the client has closed its side, or the connection is lost.
	Gone() bool
	// Unanswered ends one call of this asker without a reply.
	Unanswered()
}

// ReplyCacheStats are counters of a [Replies]. Replies, Bytes, Clients, Connected,
// UnderWay and Waiting are what there is now, the others only grow.
type ReplyCacheStats struct {
	Replies   int   // remembered
	Bytes     int64 // what they take
	Clients   int   // known: connected, or with replies
	Connected int   // of them, those with a connection, or a datagram under way
	UnderWay  int   // calls begun, and not yet answered
	Waiting   int   // of them, those that a retransmission has joined

	Hits         uint64 // calls answered from memory
	Joined       uint64 // calls that joined one under way
	Forgotten    uint64 // replies not remembered because they were failures, or Forget asked for it
	TooLong      uint64 // replies not remembered because they were too long
	Evicted      uint64 // replies evicted
	EvictedYoung uint64 // of them, those that had to be kept longer, but for want of memory
}
