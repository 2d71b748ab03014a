package oncrpc

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/xdr"
)

// answered is the reply of a call, until it is put in the queue.
type answered struct {
	buf   *bufpool.Buffer // the record, without the bulk; nil: none yet
	at    int             // where in it the bulk belongs
	bulk  []byte          // nil: none
	owner Releaser        // of bulk
}

// length is how long the reply is, its record mark left out; 0: there is none.
func (a *answered) length() int {
	if a.buf == nil {
		return 0
	}
	return len(a.buf.B) - markBytes + len(a.bulk)
}

// result is the first word of the results of a call that has succeeded; 0: they
// have none, or begin with bulk.
func (a *answered) result() uint32 {
	const at = markBytes + acceptedBytes
	switch {
	case a.buf == nil, len(a.buf.B) < at+4, a.bulk != nil && a.at < at+4:
		return 0
	}
	return binary.BigEndian.Uint32(a.buf.B[at:])
}

// Reply encodes res as the call's results. It leaves when the handler has
// returned. An error, of res or because there is a reply already, is what the
// handler should return.
func (c *Call) Reply(res xdr.Appender) error {
	if c.reply.buf != nil {
		return errReplyTwice
	}
	b := c.begin(int(c.meter.hint.Load()))
	var err error
	if b, err = res.AppendXDR(b); err == nil {
		err = endRecord(b, 0, 0)
	}
	c.reply.buf.B = b
	if n := int32(min(len(b), maxReplyHint)); n > c.meter.hint.Load() {
		c.meter.hint.Store(n)
	}
	if err != nil {
		c.reply.drop()
	}
	return err
}

// ReplyBulk is [Call.Reply] for results with bulk, which is written from where
// it is, together with the rest in one vectored write. owner, if it is not nil,
// is released exactly once: when the bulk has been written, or when it will
// never be, an error of ReplyBulk included.
func (c *Call) ReplyBulk(res xdr.BulkArgs, owner Releaser) error {
	bulk := res.Bulk()
	if c.reply.buf == nil && len(bulk) > inlineBulk {
		return c.replyBulk(res, bulk, owner)
	}
	err := c.Reply(res)
	if owner != nil {
		owner.Release()
	}
	return err
}

func (c *Call) replyBulk(res xdr.BulkArgs, bulk []byte, owner Releaser) error {
	b := c.begin(0)
	c.reply.bulk, c.reply.owner = bulk, owner
	var err error
	if b, err = res.AppendHead(b); err == nil {
		c.reply.at = len(b)
		if b, err = res.AppendTail(b); err == nil {
			err = endRecord(b, 0, len(bulk))
		}
	}
	c.reply.buf.B = b
	if err != nil {
		c.reply.drop()
	}
	return err
}

// begin lends a buffer for a reply of about n bytes and fills in the head of an
// accepted one.
func (c *Call) begin(n int) []byte {
	c.reply.buf = c.s.pool.Get(n)
	return appendAccepted(beginRecord(c.reply.buf.B[:0]), c.XID, nil, Success)
}

// replyVoid, replyError and replyStartTLS are records that cannot be too long.
func (c *Call) replyVoid() { c.short(c.begin(0)) }

func (c *Call) replyError(err error) {
	c.reply.buf = c.s.pool.Get(0)
	c.short(appendError(beginRecord(c.reply.buf.B), c.XID, err))
}

func (c *Call) replyStartTLS() {
	c.reply.buf = c.s.pool.Get(0)
	c.short(appendAccepted(beginRecord(c.reply.buf.B), c.XID, startTLS[:], Success))
}

func (c *Call) short(b []byte) {
	c.reply.buf.B = b
	_ = endRecord(b, 0, 0) // fails above 2 GiB
}

// drop takes back the reply that the handler has given, if it has.
func (a *answered) drop() {
	if a.buf != nil {
		a.buf.Release()
	}
	if a.owner != nil {
		a.owner.Release()
	}
	*a = answered{}
}

// Unanswered ends a call without a reply.
func (sc *serverConn) Unanswered() { sc.enqueue(answered{}) }

// enqueue hands a call's reply to the next writer. If there is none, or
// the connection is over, the call ends here.
func (sc *serverConn) enqueue(a answered) {
	if a.buf != nil && sc.accepts(&a) {
		return
	}
	a.drop()
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.ended(1)
}

// accepts puts a reply in the queue, unless the connection is over.
func (sc *serverConn) accepts(a *answered) bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.err != nil {
		return false
	}
	sc.waiting++
	b, rec := sc.out, a.buf
	switch {
	case a.bulk != nil:
		b.head = append(b.head, rec.B[:a.at]...)
		b.bulk(a.bulk, a.owner)
		b.head = append(b.head, rec.B[a.at:]...)
	case len(rec.B) > inlineReply:
		b.bulk(rec.B, rec)
		return true
	default:
		b.head = append(b.head, rec.B...)
	}
	rec.Release()
	return true
}

// flush writes the replies that wait, unless a goroutine is at it already, which
// then writes these as well.
func (sc *serverConn) flush() {
	sc.mu.Lock()
	if sc.flushing || sc.waiting == 0 {
		sc.mu.Unlock()
		return
	}
	sc.flushing = true
	company := sc.calls > sc.waiting
	sc.mu.Unlock()
	if company {
		// Other calls are about to be answered. Letting them run first makes
		// one write of many replies.
		runtime.Gosched()
	}
	for sc.flushOnce() {
	}
}

// flushOnce writes one batch; it answers false when there was none, or the
// connection is over, and then there is no writer any more.
func (sc *serverConn) flushOnce() bool {
	sc.mu.Lock()
	b, n, nc := sc.out, sc.waiting, sc.nc
	if n == 0 {
		sc.flushing = false
		sc.mu.Unlock()
		return false
	}
	sc.out, sc.spare, sc.waiting = sc.spare, nil, 0
	err := sc.err
	sc.mu.Unlock()
	if err == nil {
		err = sc.write(nc, b)
	}
	b.reset()
	if err != nil {
		sc.fail(err)
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.spare = b
	sc.active = time.Now()
	sc.ended(n)
	return true
}

// write writes the batch. A client that does not take it fast enough is no
// client any more.
func (sc *serverConn) write(nc net.Conn, b *batch) error {
	b.seal()
	resumable := vectored(nc)
	if !resumable {
		if copied := b.coalesce(&sc.s.pool); copied != nil {
			defer copied.Release()
		}
	}
	for {
		if err := nc.SetWriteDeadline(time.Now().Add(sc.s.o.WriteTimeout)); err != nil {
			return err
		}
		n, err := b.write(nc, nc)
		sc.s.stats.bytesOut.Add(uint64(n))
		sc.bytesOut.Add(uint64(n))
		if err == nil {
			return nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		// A TLS connection does not survive a write that was cut off.
		if !resumable || n < minWriteProgress {
			return errNotTaking
		}
	}
}
