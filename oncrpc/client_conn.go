package oncrpc

import (
	"io"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// clientConn is one connection of a client: how it begins and ends. Others tell
// of sending on it (client_send.go) and of reading from it (client_lead.go).
//
// On a plain socket, callers do both themselves. Any other connection (TLS) has
// a goroutine that reads, and one that writes when there is something to write:
// such a connection does not survive that a write is interrupted, so that a
// caller could not leave.
type clientConn struct {
	c      *Client
	nc     net.Conn
	raw    syscall.RawConn // of a plain socket
	stream io.ReadWriter   // nc, or a quicker way to its socket
	inline bool            // a plain socket: callers write themselves
	led    bool            // and read themselves

	// Guarded by Client.mu.
	lane    lane
	err     error // why the connection is over
	retired bool
	calls   int           // tries that stand on it
	bulks   atomic.Int32  // of them, those that wait for bulk; read without the lock
	owed    int           // replies to calls that have left, roughly
	spoke   bool          // it has brought a reply, be it to nobody's call
	idle    time.Duration // since when no call has stood on it

	// Writing; guarded by Client.mu.
	queue     []*call
	flushing  bool          // there is a writer
	writer    *call         // the caller who writes; nil: a goroutine
	began     time.Duration // of the write under way; 0: none
	stalled   bool          // it was interrupted for taking too long
	disturbed bool          // the write deadline lies in the past

	// The writer's.
	out     batch
	sending []sending
	pushed  int64 // bytes of out written so far

	// Reading; guarded by Client.mu.
	reading   bool     // there is a reader
	leader    *call    // the caller who reads, or is about to; nil: a goroutine
	followers callList // callers who wait, and could read
	sink      *call    // whose res the reader is filling

	// The reader's.
	reply
	over  bool          // the reader has no reason to read on
	heard time.Duration // when something was read last
	stray int           // replies in a row to calls never made

	wakes    int32         // how many bytes wake the reader, if wakeAt has said so
	setWakes func(uintptr) // tells the socket
}

// attach begins to use nc. Client.mu is held.
func (c *Client) attach(nc net.Conn, l lane) {
	cc := &clientConn{c: c, nc: nc, stream: nc, lane: l, inline: vectored(nc), heard: c.moment(), idle: c.moment(), wakes: 1}
	if s, ok := nc.(syscall.Conn); ok && cc.inline && canPeek {
		if raw, err := s.SyscallConn(); err == nil {
			cc.raw, cc.led, cc.stream = raw, true, quick(nc, raw)
		}
	}
	cc.window = c.pool.Get(min(clientReadBuffer, max(c.o.MaxReply, smallRecord)))
	cc.r = recordReader{src: (*clientSource)(cc), buf: cc.window.B, max: c.o.MaxReply}
	c.conns = append(c.conns, cc)
	if !cc.led {
		cc.readInBackground()
	}
}

// retire takes no new calls on cc; it is closed when the last of its calls is
// over. Client.mu is held.
func (cc *clientConn) retire() { cc.retired = true }

// enter puts pc on the connection. Client.mu is held.
func (cc *clientConn) enter(pc *call) {
	pc.conn = cc
	cc.calls++
	if pc.bulkRes != nil {
		cc.bulks.Add(1)
	}
}

// leave takes pc off the connection. Client.mu is held.
func (cc *clientConn) leave(pc *call) {
	pc.conn = nil
	cc.calls--
	if pc.bulkRes != nil {
		cc.bulks.Add(-1)
	}
	if cc.calls > 0 {
		return
	}
	cc.idle = max(cc.c.now, pc.gotAt)
	if cc.retired {
		cc.fail(errRetired)
	} else if cc.owed > 0 && !cc.reading {
		cc.handOver()
	}
}

// fail ends the connection and, with it, every try that stands on it. Only the
// first reason counts. Client.mu is held.
func (cc *clientConn) fail(err error) {
	if cc.err != nil {
		return
	}
	c := cc.c
	cc.err = err
	cc.retire()
	c.conns = slices.DeleteFunc(c.conns, func(o *clientConn) bool { return o == cc })
	c.tell(slog.LevelDebug, "connection closed", err)
	if !cc.spoke {
		c.cannotGrow()
	}
	for _, pc := range c.slots {
		// What is being written is left to the writer, which will know whether
		// the server can have got it.
		if pc != nil && pc.conn == cc && pc.phase != over && pc.phase != batched {
			pc.finish(err)
		}
	}
	if !cc.reading {
		cc.dismiss()
	}
	if cc.inline {
		_ = cc.nc.Close() // nothing was promised that the error could break
		return
	}
	// TLS says good-bye, and may wait for room to do so.
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		_ = cc.nc.Close() // as above
	}()
}
