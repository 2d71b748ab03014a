package oncrpc

import "net"

// Replies remembers the replies of procedures that must not be executed twice
// ([Service].Once): a duplicate request cache (RFC 1813, section 4.5). Package
// replycache has one. All methods may be called concurrently.
//
// No method may wait for a call, and none may call an [Asker] with a lock held
// that the same method of another client takes.
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
	// Claim says what becomes of a call that came by to, whose serial number is
	// given. See [Verdict].
	Claim(c *Claim, to Asker, serial uint64) (Verdict, Entry)
	// Leave ends the calls that to has joined: its connection is lost, and does not
	// wait for what another goroutine executes. Of each it calls to.Unanswered.
	Leave(to Asker)
	// Release ends the use of this client.
	Release()
}

// Verdict is what becomes of a call that may have been made before.
type Verdict uint8

const (
	// Execute: the call is new. Its Entry is settled by Remember or Forget, once.
	Execute Verdict = iota
	// Replay: it was answered before. Claim has given the reply to [Claim.Replay].
	Replay
	// Joined: another goroutine executes it, and answers the newest asker. Claim has
	// called [Claim.PassOn], and Unanswered of the asker that gets no reply for it.
	Joined
)

// Entry is a call under way in the memory of a [Replies].
type Entry interface {
	// Remember keeps the reply: the three parts in a row. It copies them. It returns
	// the asker that gets the reply, or nil if that is the one that claimed the call.
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
	EvictedYoung uint64 // of them, for want of memory: ones that were still to be kept
}

// Claim is a call before its handler runs, as a [Replies] sees it. The fields are
// [Call]'s; XID, Proc, Auth and Args tell one call from another.
type Claim Call

// Replay gives the call the reply that was remembered. It copies message.
func (c *Claim) Replay(message []byte) {
	b := c.s.pool.Get(markBytes + len(message))
	b.B = append(beginRecord(b.B[:0]), message...)
	_ = endRecord(b.B, 0, 0) // fails above 2 GiB
	c.reply.buf = b
}

// PassOn frees a call that is not answered here. Afterwards its asker's call may be
// over at any time, and the server's Close does not wait for it.
func (c *Claim) PassOn() { (*Call)(c).aside() }

// once is what a call knows of the server's Replies.
type once struct {
	is     bool          // the procedure must not be executed twice
	client ClientReplies // nil: the server has no Replies
	serial uint64        // of the connection, or the datagram
	entry  Entry         // claimed, and to be settled
	forget bool
}

// Forget says that the reply to c is not to be remembered, because a
// retransmission should be executed anew: it says "try again later", or that the
// call was cut off. Replies that are errors of RPC are not remembered anyway.
func (c *Call) Forget() { c.once.forget = true }

// claim asks what is to become of c, and reports whether to execute it. If not, c
// is used up.
func (c *Call) claim() bool {
	to, client := c.to, c.once.client
	v, entry := client.Claim((*Claim)(c), to, c.once.serial)
	switch v {
	case Execute:
		c.once.entry = entry
		return true
	case Replay:
		reply := c.reply
		c.observe(nil, c.measure(nil))
		c.free()
		to.enqueue(reply)
		return false
	}
	if to.context().Err() != nil {
		client.Leave(to) // the connection was lost while the call joined: its own Leave may have come before
	}
	return false
}

// aside frees a call that is not answered here.
func (c *Call) aside() {
	c.meter.aside.Add(1)
	c.free()
}

// late drops a call whose connection was lost before it began. The client has
// asked again, or will: executed now, the call could undo a later one.
func (c *Call) late() {
	to := c.to
	c.s.stats.late.Add(1)
	c.aside()
	to.Unanswered()
}

// settle hands the handler's answer to the Replies. It returns the asker that gets
// the reply, or nil if that is the one that had the call executed.
func (c *Call) settle(err error) route {
	a, entry := &c.reply, c.once.entry
	var to Asker
	switch {
	case err != nil || c.once.forget || !c.s.admits(c.State):
		to = entry.Forget()
	case a.bulk == nil:
		to = entry.Remember(a.buf.B[markBytes:], nil, nil)
	default:
		to = entry.Remember(a.buf.B[markBytes:a.at], a.bulk, a.buf.B[a.at:])
	}
	if to == nil {
		return nil
	}
	return to.(route)
}
