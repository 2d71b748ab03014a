package oncrpc

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/oncrpc/internal/phase"
	"github.com/nfsbox/nfsbox/oncrpc/internal/socket"
	"github.com/nfsbox/nfsbox/xdr"
)

// hub is what the connections of one client share. Client embeds it; the connections
// know nothing else of their client.
type hub struct {
	pool     bufpool.Pool
	born     time.Time      // times are since then; none is 0
	maxReply int            // ClientOptions.MaxReply
	wg       sync.WaitGroup // the client's own goroutines; added to under mu, before closed
	owner    owner

	bytesIn, bytesOut atomic.Uint64

	mu      sync.Mutex // guards what follows, and what is marked so in call and clientConn
	closed  bool
	reached bool          // there has been a reply, ever
	conns   []*clientConn // open: that take calls, or are retired and have calls left
	next    uint32        // the next transaction number
	issued  uint64        // how many there have been
	slots   [slotCount]*call
	now     time.Duration // the clock at the last tick
	late    uint64        // replies discarded because no call waited any more
	stray   uint64        // replies discarded because no call had ever been made
}

// owner is what connections tell of themselves to their client. hub.mu is held.
type owner interface {
	// answered: a reply to a call has come.
	answered()
	// ended: cc is over, for this reason. Its calls end next.
	ended(cc *clientConn, why error)
}

// clock is the time since born.
func (h *hub) clock() time.Duration { return time.Since(h.born) }

// lane is what a connection carries.
type lane uint8

const (
	metaLane lane = iota // calls without file data; of a client with one connection, all
	bulkLane             // calls that move file data
)

// clientConn is one connection of a client: a stream of calls out, and of replies in.
// conn_send.go writes, conn_reply.go reads a reply, conn_lead.go says which goroutine
// reads, conn_end.go ends tries and connections.
//
// On a plain socket the callers write and read themselves. Any other connection (TLS)
// has a goroutine that reads, and one that writes when a call is queued: it does not
// survive an interrupted write, and a caller must be free to leave.
type clientConn struct {
	hub    *hub
	nc     net.Conn
	stream io.ReadWriter  // nc, or a quicker way to its socket
	socket *socket.Socket // nil: none that can tell whether the server has closed it
	inline bool           // a plain socket: callers write themselves
	led    bool           // it has a socket: callers read themselves, one of them is the leader

	// Guarded by hub.mu.
	lane    lane
	err     error // why the connection is over
	retired bool
	calls   int           // tries under way on it
	bulks   atomic.Int32  // of them, those that wait for bulk; read without the lock
	owed    int           // replies still to come for calls that are over; may be too high
	spoke   bool          // it has brought a reply, even one that no call waited for
	idle    time.Duration // when its last call left

	// Writing; guarded by hub.mu.
	queue     []*call
	flushing  bool          // there is a writer
	writer    *call         // the caller that writes; nil: a goroutine of the client
	began     time.Duration // of the write under way; 0: none
	stalled   bool          // the write was interrupted because it made no progress
	disturbed bool          // the write deadline lies in the past: writes return at once

	// The writer's.
	out     batch
	sending []sending
	pushed  int64 // bytes of out written so far

	// Reading; guarded by hub.mu.
	reading   bool     // there is a reader
	leader    *call    // the caller that reads, or is about to; nil: a goroutine of the client
	followers callList // callers that wait, and can be made the leader
	sink      *call    // whose res the reader is filling

	// The reader's.
	reply
	over  bool          // the reader's duty has ended
	heard time.Duration // when bytes last came
	stray int           // replies in a row to calls never made
}

// sending is a call in a batch. Its caller may leave before the batch is written, unless
// the batch points into its bulk; xid then tells whether pc is still the same call.
type sending struct {
	pc  *call
	xid uint32
	end int64 // of its record in the batch
	cut int   // the index of its bulk among the cuts; -1: none
	err error // it did not encode
}

// stage is how far the reading of a reply has come.
type stage uint8

const (
	between    stage = iota // no reply has begun
	inHead                  // its first bytes are read into rec
	inRest                  // all of it is read into rec
	inBulkHead              // the bytes before the bulk are read into rec
	inBulk                  // the bulk is read into the caller's buffer
	inTail                  // the bytes behind the bulk are read into tail
	inSkip                  // the rest is dropped
)

// reply is the reply that is being read. The reader owns it; an interrupted reader
// leaves it to the next one, which goes on where it was.
type reply struct {
	window *bufpool.Buffer // the memory of r's buffer
	r      recordReader
	stage  stage
	xid    uint32
	rec    *bufpool.Buffer
	whole  bool   // rec has all of it
	dst    []byte // the caller's buffer, for the bulk
	filled int    // bytes of dst that have come
	ahead  []byte // bytes in rec that follow the bulk
	tail   *bufpool.Buffer
}

// call is one call under way. It belongs to its caller, which waits. The writer and
// the reader of a connection borrow parts of it, as lent says.
type call struct {
	xid  uint32
	wake chan struct{} // one token: look again
	request
	try
	history
	answer
}

// borrowers are the goroutines of the connection that use a part of the call. While
// there is one, Call does not return.
type borrowers uint8

const (
	byWriter borrowers = 1 << iota // auth, args and the bulk of args
	byReader                       // res and its bulk
)

// callerState is what the goroutine in Call is about.
type callerState uint8

const (
	awake     callerState = iota // it runs, or reads, or writes
	sleeping                     // it waits for the token in wake, until nothing is lent any more
	following                    // it waits for the token, and may be asked to read meanwhile
)

// duty is whether the caller writes its connection's queue.
type duty uint8

const (
	noDuty          duty = iota
	writesAlone          // no other call is under way on the connection
	writesInCompany      // others are: it lets them queue theirs first
)

// request is what is asked for; it does not change while the call lasts.
type request struct {
	ctx      context.Context
	proc     *xdr.Proc
	auth     Auth
	args     xdr.Appender
	bulkArgs xdr.BulkArgs // args, or nil
	res      xdr.Unmarshaler
	bulkRes  xdr.BulkResult // res, or nil
	counters *procCounters  // may be nil
	began    time.Duration  // when Call was called; on the hub's clock, as all times of a call
	deadline time.Duration  // when the call's patience ends
	longest  int            // the longest reply that is taken, in bytes
	once     bool           // never to be sent twice
}

// try is one sending of the call on one connection. Guarded by hub.mu.
type try struct {
	phase   phase.Phase
	lent    borrowers
	caller  callerState
	duty    duty
	conn    *clientConn   // nil: resting
	due     time.Duration // when this try times out
	sentAt  time.Duration // when it was about to be written; 0: not yet
	gotAt   time.Duration // when the reply came
	replies uint64        // how many the client had received when it was queued
	wrote   bool          // written whole, or perhaps so: the server may execute it
	err     error         // why there is no reply
	breach  error         // how its connection broke the protocol; nil: it did not
	mine    bool          // and that was surely in this call's reply
	older   *call         // its neighbours among conn's followers
	newer   *call
}

// history is what the tries so far have shown. The caller uses it between tries; fields
// that are marked are guarded by hub.mu.
type history struct {
	wait        time.Duration // the time-out of this try; guarded by hub.mu
	firstAt     time.Duration // sentAt of the first try that was sent; guarded by hub.mu
	sends       int           // tries that were sent
	unheard     bool          // the server has answered no call since the last try began
	broken      error         // the kind of the breaches so far
	breaches    int           // of that kind in a row that were surely this call's
	near        int           // and those that may have been another's
	first       int           // tries that ended before the server had ever answered any call
	lost        int           // tries that lost a connection on which others were answered
	notBefore   time.Duration // when the next try may begin
	retransmits int
	timeouts    int    // guarded by hub.mu
	bytesOut    uint64 // guarded by hub.mu
	bytesIn     uint64
}

// answer is the reply. The reader fills it; it is the caller's when the phase is over.
type answer struct {
	rec, tail *bufpool.Buffer
	body      []byte // the reply, in rec, behind the transaction number
	verf      Auth
	refusal   error // what the reply's head says, if that is not success
	parsed    parsed
	tailBytes []byte // with bulkIn: what follows the bulk
	dec       xdr.Decoder
}

// parsed is how far the reader has decoded a reply; the caller decodes the rest.
type parsed uint8

const (
	nothing parsed = iota
	headIn         // the head: see refusal
	bulkIn         // and the bulk, which is in its place
)

// callList is a list of calls, the newest last.
type callList struct{ last *call }

// idle reports whether the try is over and no part of the call is lent. hub.mu is held.
func (pc *call) idle() bool { return pc.phase == phase.Over && pc.lent == 0 }

// took is the time from the sending of the answered try to its reply; 0: no reply came.
func (pc *call) took() time.Duration {
	if pc.gotAt == 0 {
		return 0
	}
	return max(pc.gotAt-pc.sentAt, 1)
}

// left notes that a record of n bytes is about to be written. hub.mu is held.
func (pc *call) left(now time.Duration, n int64) {
	pc.sentAt = now
	if pc.firstAt == 0 {
		pc.firstAt = now
	}
	pc.bytesOut += uint64(n)
}

// enter puts pc on the connection. hub.mu is held.
func (cc *clientConn) enter(pc *call) {
	pc.conn = cc
	cc.calls++
	if pc.bulkRes != nil {
		cc.bulks.Add(1)
	}
}

// lookup finds the call that waits for the reply at hand; nil: none does. hub.mu is held.
func (cc *clientConn) lookup() *call {
	pc := cc.hub.slots[cc.xid%slotCount]
	if pc == nil || pc.xid != cc.xid || pc.conn != cc || pc.phase == phase.Queued || pc.phase == phase.Over {
		return nil
	}
	return pc
}

// retire has cc take no new calls; it is closed when the last of its calls leaves.
// hub.mu is held.
func (cc *clientConn) retire() { cc.retired = true }

// current reports whether the call is still the one that was put in the batch, on this
// connection. hub.mu is held.
func (s *sending) current(cc *clientConn) bool { return s.pc.xid == s.xid && s.pc.conn == cc }

func (l *callList) newest() *call { return l.last }

func (l *callList) add(pc *call) {
	pc.older, pc.newer = l.last, nil
	if l.last != nil {
		l.last.newer = pc
	}
	l.last = pc
}

func (l *callList) remove(pc *call) {
	if pc.older != nil {
		pc.older.newer = pc.newer
	}
	if pc.newer != nil {
		pc.newer.older = pc.older
	} else {
		l.last = pc.older
	}
	pc.older, pc.newer = nil, nil
}
