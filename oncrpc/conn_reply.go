package oncrpc

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/oncrpc/internal/phase"
	"github.com/nfsbox/nfsbox/xdr"
)

// more reads until rec holds n bytes or the whole record.
func (p *reply) more(pool *bufpool.Pool, n int) error {
	have := len(p.rec.B)
	if n > cap(p.rec.B) {
		larger := pool.Get(n)
		copy(larger.B, p.rec.B)
		p.rec.Release()
		p.rec = larger
	}
	p.rec.B = p.rec.B[:n]
	got, err := p.r.full(p.rec.B[have:])
	p.rec.B = p.rec.B[:have+got]
	p.whole = p.r.last && p.r.left == 0
	return ifEnd(err, nil)
}

// step reads one reply, from where an interrupted reader has left it. An error other
// than errBrokenOff ends the connection.
func (cc *clientConn) step() error {
	for {
		var err error
		switch cc.stage {
		case between:
			err = cc.beginReply()
		case inHead:
			err = cc.readHead()
		case inRest:
			err = cc.readRest()
		case inBulkHead:
			err = cc.readBulkHead()
		case inBulk:
			err = cc.readBulk()
		case inTail:
			err = cc.readTail()
		case inSkip:
			err = cc.readNothing()
		}
		if err != nil || cc.stage == between {
			return err
		}
	}
}

// beginReply waits for a reply. While a call waits for bulk, a read takes little more
// than it needs: bulk that lands in the read buffer must be copied. How long the reply may
// be is not known before claim finds its call.
func (cc *clientConn) beginReply() error {
	cc.r.max = max(maxSkipped, cc.hub.maxReply)
	cc.r.ahead = len(cc.r.buf)
	if cc.bulks.Load() > 0 {
		cc.r.ahead = bulkReadAhead
	}
	if err := cc.r.begin(); err != nil {
		return ifEnd(err, errCutMessage)
	}
	cc.rec = cc.hub.pool.Get(replyHead)
	cc.rec.B = cc.rec.B[:0]
	cc.stage = inHead
	return nil
}

func (cc *clientConn) readHead() error {
	if err := cc.more(&cc.hub.pool, replyHead); err != nil {
		return err
	}
	if len(cc.rec.B) < 8 {
		return errCutMessage
	}
	if binary.BigEndian.Uint32(cc.rec.B[4:]) != msgReply {
		return errNotReply
	}
	cc.xid = binary.BigEndian.Uint32(cc.rec.B)
	return cc.claim()
}

// claim finds the call that waits for this reply. If its result takes bulk, the reader
// borrows it. If not, and the reply is here whole, the call gets it at once. A reply
// without a call is counted and skipped.
func (cc *clientConn) claim() error {
	h := cc.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	cc.spoke = true
	pc := cc.lookup()
	switch {
	case pc == nil:
		cc.stage = inSkip
		return cc.unclaimed()
	case cc.r.atMost(pc.longest) != nil:
		return cc.r.atMost(pc.longest)
	case pc.bulkRes != nil:
		pc.phase.To(phase.Arriving)
		pc.lent |= byReader
		cc.sink = pc
		pc.parsed, pc.refusal = nothing, nil
		cc.stage = inBulkHead
	case cc.whole:
		cc.hand(pc, cc.rec.B)
		cc.r.end()
	default:
		cc.stage = inRest
	}
	cc.stray = 0
	return nil
}

// unclaimed counts a reply that no call waits for. hub.mu is held.
func (cc *clientConn) unclaimed() error {
	h := cc.hub
	if age := h.next - cc.xid; age > 0 && uint64(age) <= h.issued {
		h.late++
		cc.owed = max(cc.owed-1, 0)
		cc.judge()
		return nil
	}
	h.stray++
	if cc.stray++; cc.stray > maxStray {
		return errStray
	}
	return nil
}

// readRest reads the rest of a reply without bulk, and hands it to its call if that still
// waits.
func (cc *clientConn) readRest() (err error) {
	h := cc.hub
	if cc.rec, err = cc.r.rest(&h.pool, cc.rec, nil); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if pc := cc.lookup(); pc != nil {
		cc.hand(pc, cc.rec.B)
		return nil
	}
	cc.reply.drop()
	return cc.unclaimed()
}

// hand gives pc its reply, which is rec in the buffer at hand. hub.mu is held.
func (cc *clientConn) hand(pc *call, rec []byte) {
	pc.rec, pc.tail, pc.body = cc.rec, cc.tail, rec[4:]
	cc.rec, cc.tail = nil, nil
	cc.hub.owner.answered()
	pc.gotAt = cc.heard
	pc.bytesIn = uint64(cc.r.bytes())
	pc.finish(nil)
	cc.judge()
	cc.reply.drop()
}

// readBulkHead decodes what stands before the bulk. If bytes are missing it reads more and
// decodes again from the start: a larger buffer has moved what was borrowed.
func (cc *clientConn) readBulkHead() error {
	pc := cc.sink
	pc.parsed = headIn
	d := &pc.dec
	d.Reset(cc.rec.B[4:])
	pc.verf, pc.refusal = decodeReply(d)
	if pc.refusal != nil {
		cc.stage = inSkip
		return nil
	}
	dst, n, err := pc.decodeHead()
	switch {
	case errors.Is(err, xdr.ErrShort) && !cc.whole && len(cc.rec.B) < maxReplyHead:
		return cc.more(&cc.hub.pool, 2*len(cc.rec.B))
	case err == nil && dst == nil && (d.Len() > 0 || !cc.whole):
		err = xdr.ErrTrailing
	case err == nil && dst != nil && uint(n) > uint(len(dst)):
		err = errBulkTooLong
	}
	if err != nil || dst == nil {
		return cc.refuse(err)
	}
	cc.dst = dst[:n]
	cc.filled = copy(cc.dst, d.Rest())
	cc.ahead = d.Rest()[cc.filled:]
	cc.stage = inBulk
	return nil
}

// decodeHead calls the result's own DecodeHead. If that panics, its call fails: the
// goroutine may be another call's.
func (pc *call) decodeHead() (dst []byte, n int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoding the results: panic: %v", p)
		}
	}()
	return pc.bulkRes.DecodeHead(&pc.dec)
}

// refuse ends a reply without bulk, or with bulk that does not fit.
func (cc *clientConn) refuse(err error) error {
	cc.sink.refusal = err
	cc.stage = inSkip
	_, tooLong := errors.AsType[*xdr.LengthError](err)
	if tooLong || errors.Is(err, errBulkTooLong) {
		// The server sends more than was asked for. The connection ends: to skip what
		// it announces might take for ever.
		cc.handBulk()
		return err
	}
	return nil
}

func (cc *clientConn) readBulk() error {
	defer cc.socket.WakeAt(1) // the next reply may be short
	for cc.filled < len(cc.dst) {
		if cc.r.r == cc.r.w { // else bytes in the buffer are copied first
			cc.socket.WakeAt(min(len(cc.dst)-cc.filled, cc.r.left))
		}
		n, err := cc.r.Read(cc.dst[cc.filled:])
		cc.filled += n
		switch {
		case errors.Is(err, errRecordEnd):
			cc.sink.refusal = xdr.ErrShort
			cc.stage = inSkip
			return nil
		case err != nil:
			return err
		}
	}
	cc.stage = inTail
	return nil
}

// readTail reads what follows the bulk: pad bytes, and then the tail. Some of it may have
// come with the head.
func (cc *clientConn) readTail() (err error) {
	rest := cc.ahead
	if cc.whole {
		cc.r.end()
	} else {
		if cc.tail == nil {
			cc.tail = cc.hub.pool.Get(len(cc.ahead))
			copy(cc.tail.B, cc.ahead)
		}
		if cc.tail, err = cc.r.rest(&cc.hub.pool, cc.tail, nil); err != nil {
			return err
		}
		rest = cc.tail.B
	}
	pc, pad := cc.sink, xdr.Pad(len(cc.dst))
	if len(rest) >= pad {
		pc.parsed, pc.tailBytes = bulkIn, rest[pad:]
	} else {
		pc.refusal = xdr.ErrShort
	}
	cc.handBulk()
	return nil
}

// readNothing drops the rest of the record. If a call waits for this reply, it gets what
// is known of it.
func (cc *clientConn) readNothing() error {
	if err := cc.r.skip(); err != nil {
		return err
	}
	if cc.sink != nil {
		cc.handBulk()
	} else {
		cc.reply.drop()
	}
	return nil
}

// handBulk ends the reader's use of a call, which gets the reply unless it is over.
func (cc *clientConn) handBulk() {
	h, pc := cc.hub, cc.sink
	h.mu.Lock()
	defer h.mu.Unlock()
	if pc.phase == phase.Over {
		h.late++
		cc.reply.drop()
	} else {
		cc.hand(pc, cc.rec.B)
	}
	cc.release(pc)
}

// judge notes whether the reader's duty has ended: a leader's when its call is over, a
// goroutine's when no replies are owed and no write is under way. hub.mu is held.
func (cc *clientConn) judge() {
	if cc.leader != nil {
		cc.over = cc.leader.phase == phase.Over
	} else {
		cc.over = cc.led && cc.owed == 0 && cc.began == 0
	}
}

// handTogether hands out the replies that stand whole in the read buffer, side by side:
// under one lock, and in one buffer that they share. It stops before the first reply that
// takes bulk or that no call waits for. It returns false if there are not two: a single
// reply goes through step.
func (cc *clientConn) handTogether() bool {
	in := cc.r.standing()
	in = in[:min(len(in), maxTogether)]
	first := recordBytes(in)
	if first == 0 || recordBytes(in[first:]) == 0 {
		return false
	}
	h := cc.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	end := cc.expected(in)
	if end <= first {
		return false
	}
	shared := h.pool.Get(end)
	defer shared.Release()
	copy(shared.B, in)
	for rest := shared.B; len(rest) > 0; {
		n := recordBytes(rest)
		rec := rest[markBytes:n:n]
		pc := cc.awaited(rec)
		if pc == nil { // the second reply to one call
			break
		}
		cc.r.pass(n)
		cc.rec = shared.Share()
		cc.hand(pc, rec)
		rest = rest[n:]
	}
	return true
}

// expected is how many bytes at the beginning of in are replies that calls without bulk
// wait for. It looks no further and copies nothing: a server that repeats itself for ever
// costs no more than what it sends. hub.mu is held.
func (cc *clientConn) expected(in []byte) (end int) {
	for n := recordBytes(in); n > 0 && cc.awaited(in[end+markBytes:end+n]) != nil; {
		end += n
		n = recordBytes(in[end:])
	}
	return end
}

// awaited finds the call without bulk that waits for the reply in rec; nil: none does, or
// the reply is too long for it. hub.mu is held.
func (cc *clientConn) awaited(rec []byte) *call {
	if len(rec) < 8 || binary.BigEndian.Uint32(rec[4:]) != msgReply {
		return nil
	}
	cc.xid = binary.BigEndian.Uint32(rec)
	if pc := cc.lookup(); pc != nil && pc.bulkRes == nil && len(rec) <= pc.longest {
		cc.spoke, cc.stray = true, 0
		return pc
	}
	return nil
}
