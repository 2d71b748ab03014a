package oncrpc

import (
	"encoding/binary"
	"errors"
	"os"
	"time"

	"github.com/nfsbox/nfsbox/internal/bufpool"
	"github.com/nfsbox/nfsbox/xdr"
)

// clientSource is a clientConn as the reader's source of bytes.
type clientSource clientConn

// Read reads from the connection. A passed deadline says that a caller wants to
// leave: if it is the one whose buffers are being filled, they are given back
// and the answer is errDetached, once. The deadline is set and reset under
// Client.mu, so that no wish gets lost.
func (s *clientSource) Read(p []byte) (int, error) {
	cc := (*clientConn)(s)
	for {
		n, err := cc.nc.Read(p)
		if n > 0 {
			cc.c.bytesIn.Add(uint64(n))
			return n, nil
		}
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err
		}
		if err := cc.interrupted(); err != nil {
			return 0, err
		}
	}
}

// interrupted resets the read deadline and lets the caller go who asked for it,
// if one did: errDetached.
func (cc *clientConn) interrupted() error {
	c := cc.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if cc.err != nil {
		return cc.err
	}
	if err := cc.nc.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	pc := cc.sink
	if pc == nil || !pc.finished {
		return nil
	}
	cc.release(pc)
	c.stats.Late++
	return errDetached
}

// release ends the reader's hold on pc. Client.mu is held.
func (cc *clientConn) release(pc *call) {
	cc.sink = nil
	pc.reading = false
	pc.signal()
}

// read is the reader of the connection: it hands replies to their calls until
// the connection is over.
func (cc *clientConn) read(window *bufpool.Buffer) {
	c := cc.c
	defer c.wg.Done()
	var err error
	for err == nil {
		err = cc.next()
		cc.drop()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cc.fail(lost(err))
	if cc.sink != nil {
		cc.release(cc.sink)
	}
	window.Release()
}

// drop releases what the reply at hand has left behind.
func (cc *clientConn) drop() {
	if cc.rec != nil {
		cc.rec.Release()
		cc.rec = nil
	}
	if cc.tail != nil {
		cc.tail.Release()
		cc.tail = nil
	}
}

// next reads one reply. An error is the end of the connection.
func (cc *clientConn) next() error {
	cc.lookAhead()
	if err := cc.r.begin(); err != nil {
		return ifEnd(err, errCutMessage)
	}
	cc.rec = cc.c.pool.Get(replyHead)
	cc.rec.B = cc.rec.B[:0]
	if err := cc.more(replyHead); err != nil {
		return err
	}
	if len(cc.rec.B) < 8 {
		return errCutMessage
	}
	if binary.BigEndian.Uint32(cc.rec.B[4:]) != msgReply {
		return errNotReply
	}
	xid := binary.BigEndian.Uint32(cc.rec.B)
	pc, bulk, err := cc.claim(xid)
	switch {
	case err != nil:
		return err
	case bulk:
		if err = cc.bulkReply(pc); errors.Is(err, errDetached) {
			err = cc.r.skip()
		}
		return err
	case pc == nil || cc.rec == nil:
		return cc.r.skip()
	}
	if cc.rec, err = cc.r.rest(&cc.c.pool, cc.rec, nil); err != nil {
		return err
	}
	cc.deliver(xid)
	return nil
}

// ifEnd turns the end of a record, where more of it was needed, into err.
func ifEnd(err, instead error) error {
	if errors.Is(err, errRecordEnd) {
		return instead
	}
	return err
}

// more reads on until rec holds n bytes, or the whole record.
func (cc *clientConn) more(n int) error {
	have := len(cc.rec.B)
	if n > cap(cc.rec.B) {
		larger := cc.c.pool.Get(n)
		copy(larger.B, cc.rec.B)
		cc.rec.Release()
		cc.rec = larger
	}
	cc.rec.B = cc.rec.B[:n]
	got, err := cc.r.full(cc.rec.B[have:])
	cc.rec.B = cc.rec.B[:have+got]
	cc.whole = cc.r.last && cc.r.left == 0
	return ifEnd(err, nil)
}

// lookAhead decides how much a read takes in beyond what it needs.
func (cc *clientConn) lookAhead() {
	cc.whole = false
	cc.r.ahead = len(cc.r.buf)
	if cc.bulks.Load() > 0 {
		cc.r.ahead = bulkReadAhead
	}
}

// lookup finds the call that waits for this reply. Client.mu is held.
func (cc *clientConn) lookup(xid uint32) *call {
	pc := cc.c.slots[xid%slotCount]
	if pc == nil || pc.xid != xid || pc.conn != cc || pc.queued || pc.finished {
		return nil
	}
	return pc
}

// claim finds the call that waits for this reply, and borrows its result if
// that takes bulk; if it does not, and the reply is here, it is handed over at
// once. Without a call, the reply is counted.
func (cc *clientConn) claim(xid uint32) (pc *call, bulk bool, err error) {
	c := cc.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if pc = cc.lookup(xid); pc != nil {
		cc.stray = 0
		switch {
		case pc.bulkRes != nil:
			pc.reading, cc.sink = true, pc
		case cc.whole:
			cc.hand(pc)
		}
		return pc, pc.bulkRes != nil, nil
	}
	if age := c.next - xid; age > 0 && uint64(age) <= c.issued {
		c.stats.Late++
		return nil, false, nil
	}
	c.stats.Stray++
	if cc.stray++; cc.stray > maxStray {
		err = errStray
	}
	return nil, false, err
}

// deliver hands the record to its call, if that still waits.
func (cc *clientConn) deliver(xid uint32) {
	c := cc.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if pc := cc.lookup(xid); pc != nil {
		cc.hand(pc)
	} else {
		c.stats.Late++
	}
}

// hand gives the reply at hand to pc. Client.mu is held.
func (cc *clientConn) hand(pc *call) {
	c := cc.c
	pc.rec, pc.tail = cc.rec, cc.tail
	cc.rec, cc.tail = nil, nil
	c.failures = 0
	c.stats.Replies++
	pc.finish(nil)
}

// bulkReply reads the reply of pc, whose bulk goes to where pc wants it.
func (cc *clientConn) bulkReply(pc *call) error {
	pc.parsed, pc.filled = true, false
	d := &pc.dec
	d.Reset(cc.rec.B[4:])
	pc.verf, pc.answer = decodeReply(d)
	if pc.answer != nil {
		return cc.skipAndHand(pc)
	}
	dst, n, err := cc.bulkHead(pc, len(cc.rec.B)-d.Len())
	if err != nil || dst == nil {
		return err
	}
	k := copy(dst[:n], d.Rest())
	if _, err := cc.r.full(dst[k:n]); err != nil {
		if !errors.Is(err, errRecordEnd) {
			return err
		}
		pc.answer = xdr.ErrShort
		return cc.skipAndHand(pc)
	}
	if err := cc.bulkTail(pc, d.Rest()[k:], xdr.Pad(n)); err != nil {
		return err
	}
	cc.handBulk(pc)
	return nil
}

// bulkHead decodes what stands before the bulk, behind at in rec. With dst nil
// the reply has been dealt with.
func (cc *clientConn) bulkHead(pc *call, at int) (dst []byte, n int, err error) {
	d := &pc.dec
	for {
		d.Reset(cc.rec.B[at:])
		dst, n, err = pc.bulkRes.DecodeHead(d)
		if !errors.Is(err, xdr.ErrShort) || cc.whole || len(cc.rec.B) >= maxReplyHead {
			break
		}
		if err := cc.more(2 * len(cc.rec.B)); err != nil {
			return nil, 0, err
		}
	}
	if err == nil && dst == nil && (d.Len() > 0 || !cc.whole) {
		err = xdr.ErrTrailing
	}
	if err == nil && dst != nil && uint(n) > uint(len(dst)) {
		err = errBulkTooLong
	}
	if err == nil && dst != nil {
		return dst, n, nil
	}
	pc.answer = err
	_, tooLong := errors.AsType[*xdr.LengthError](err)
	if tooLong || errors.Is(err, errBulkTooLong) {
		// Whatever this is, it is not what was asked for: no such peer is
		// given a second chance on this connection.
		cc.handBulk(pc)
		return nil, 0, err
	}
	return nil, 0, cc.skipAndHand(pc)
}

// bulkTail reads what follows the bulk: pad bytes, and then the tail. The first
// of it may stand in rest already.
func (cc *clientConn) bulkTail(pc *call, rest []byte, pad int) (err error) {
	if !cc.whole {
		cc.tail = cc.c.pool.Get(len(rest))
		copy(cc.tail.B, rest)
		if cc.tail, err = cc.r.rest(&cc.c.pool, cc.tail, nil); err != nil {
			return err
		}
		rest = cc.tail.B
	} else {
		cc.r.end()
	}
	pc.filled = len(rest) >= pad
	if !pc.filled {
		pc.answer = xdr.ErrShort
		return nil
	}
	pc.tailBytes = rest[pad:]
	return nil
}

// skipAndHand drops the rest of the record and hands over what is known of it.
func (cc *clientConn) skipAndHand(pc *call) error {
	if err := cc.r.skip(); err != nil {
		return err
	}
	cc.handBulk(pc)
	return nil
}

// handBulk ends the reader's hold on pc, with a reply if pc still wants one.
func (cc *clientConn) handBulk(pc *call) {
	c := cc.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if pc.finished {
		c.stats.Late++
	} else {
		cc.hand(pc)
	}
	cc.release(pc)
}
