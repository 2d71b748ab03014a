package oncrpc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/oncrpc/internal/phase"
)

// This file writes. Calls stand in a queue. A caller that finds no writer becomes the
// writer, and sends all that is queued in one write, other callers' calls included.

// encodeError says that arguments do not encode: another try would not help.
type encodeError struct{ err error }

// Error is that of the encoder.
func (e *encodeError) Error() string { return e.err.Error() }

// Unwrap returns the encoder's error.
func (e *encodeError) Unwrap() error { return e.err }

// enqueue puts pc in the queue. If there is no writer, pc's caller gets the duty, or a
// goroutine where callers do not write. hub.mu is held.
func (cc *clientConn) enqueue(pc *call) {
	cc.enter(pc)
	pc.phase.To(phase.Queued)
	cc.queue = append(cc.queue, pc)
	switch {
	case cc.flushing:
	case cc.inline:
		cc.flushing, cc.writer = true, pc
		pc.duty = writesAlone
		if cc.calls > 1 {
			pc.duty = writesInCompany
		}
	default:
		cc.flushing = true
		cc.hub.wg.Add(1)
		go cc.flushAlone()
	}
}

// flushAlone is a goroutine that writes the queue. It yields first: other goroutines are
// about to call, and one write then carries many calls.
func (cc *clientConn) flushAlone() {
	defer cc.hub.wg.Done()
	runtime.Gosched()
	cc.flush(nil)
}

// flush writes the queue until it is empty, the connection is over, or another goroutine
// has taken over. self is the caller that writes; nil: a goroutine.
func (cc *clientConn) flush(self *call) {
	for round := 0; cc.take(self, round); round++ {
		cc.encode()
		if !cc.push(self) {
			return
		}
	}
}

// take ends the batch before, and moves calls from the queue to the next. It returns
// false if this goroutine is no longer the writer: the queue is empty, the connection is
// over, or self has written for others long enough (writeRounds).
func (cc *clientConn) take(self *call, round int) bool {
	h := cc.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if round > 0 {
		cc.finishBatch()
	}
	n := min(len(cc.queue), maxBatch)
	if cc.err != nil || n == 0 {
		cc.flushing, cc.writer = false, nil
		return false
	}
	if self != nil && round >= writeRounds {
		cc.writer = nil
		h.wg.Add(1)
		go cc.flushAlone()
		return false
	}
	for _, pc := range cc.queue[:n] {
		pc.phase.To(phase.Batched)
		pc.lent |= byWriter
		pc.wrote = true
		cc.sending = append(cc.sending, sending{pc: pc, xid: pc.xid, cut: -1})
	}
	cc.queue = slices.Delete(cc.queue, 0, n)
	return true
}

// encode builds the batch. It gives back the calls whose bulk the batch does not point
// into.
func (cc *clientConn) encode() {
	for i := range cc.sending {
		s := &cc.sending[i]
		head, cuts := cc.out.head, len(cc.out.cuts)
		if s.err = cc.append(s.pc); s.err != nil {
			cc.out.rewind(head, cuts)
		} else if len(cc.out.cuts) > cuts {
			s.cut = cuts
		}
		s.end = cc.out.bytes()
	}
	cc.out.seal()
	h := cc.hub
	now, before := h.clock(), int64(0)
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range cc.sending {
		s := &cc.sending[i]
		if s.err == nil {
			s.pc.left(now, s.end-before)
		} else {
			s.pc.wrote = false
			if s.pc.phase != phase.Over {
				s.pc.finish(&encodeError{s.err})
			}
		}
		before = s.end
		if s.cut < 0 {
			s.pc.giveBack()
		}
	}
	cc.began = now
}

// append encodes one call. If its encoder panics, that call fails: the goroutine may be
// another call's.
func (cc *clientConn) append(pc *call) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("encoding the arguments: panic: %v", p)
		}
	}()
	b := &cc.out
	at, before := len(b.head), b.bytes()
	b.head = appendCall(beginRecord(b.head), pc.xid, pc.proc, &pc.auth)
	if pc.bulkArgs == nil || len(pc.bulkArgs.Bulk()) <= inlineBulk {
		if b.head, err = pc.args.AppendXDR(b.head); err != nil {
			return err
		}
		return endRecord(b.head, at, 0)
	}
	if b.head, err = pc.bulkArgs.AppendHead(b.head); err != nil {
		return err
	}
	b.bulk(pc.bulkArgs.Bulk(), nil)
	if b.head, err = pc.bulkArgs.AppendTail(b.head); err != nil {
		return err
	}
	return endRecord(b.head, at, int(b.bytes()-before)-(len(b.head)-at))
}

// push writes the batch; take ends it. It returns false if this goroutine is no longer
// the writer, or the connection is over.
func (cc *clientConn) push(self *call) bool {
	one := io.Writer(cc.stream)
	if !cc.inline {
		one = (*clientSink)(cc)
		if copied := cc.coalesce(); copied != nil {
			defer copied.Release()
		}
	}
	for len(cc.out.left) > 0 {
		n, err := cc.out.write(cc.nc, one)
		cc.pushed += n
		cc.hub.bytesOut.Add(uint64(n))
		if err == nil {
			break
		}
		if !cc.inline || !errors.Is(err, os.ErrDeadlineExceeded) || !cc.resume(n > 0) {
			cc.broken(err)
			return false
		}
		if cc.passOn(self) {
			return false
		}
	}
	return true
}

// clientSink writes to a connection whose writes cannot be interrupted. It writes in
// pieces, so that the clock sees progress.
type clientSink clientConn

// Write writes all of p.
func (s *clientSink) Write(p []byte) (int, error) {
	cc := (*clientConn)(s)
	done := 0
	for done < len(p) {
		piece := p[done:min(len(p), done+writePiece)]
		n, err := cc.nc.Write(piece)
		done += n
		if err == nil && n < len(piece) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return done, err
		}
		cc.hub.mu.Lock()
		cc.began = cc.hub.clock()
		cc.hub.mu.Unlock()
	}
	return done, nil
}

// coalesce copies the batch, for a connection whose writes cannot be interrupted, and
// gives its calls back.
func (cc *clientConn) coalesce() *bufpool.Buffer {
	h := cc.hub
	buf := cc.out.coalesce(&h.pool)
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range cc.sending {
		if s := &cc.sending[i]; s.cut >= 0 {
			s.cut = -1
			s.pc.giveBack()
		}
	}
	return buf
}

// finishBatch ends a batch that was written. hub.mu is held.
func (cc *clientConn) finishBatch() {
	cc.undisturb()
	cc.began = 0
	cc.clearBatch()
}

// clearBatch gives back the calls in the batch, and finishes those that fail left to it.
// hub.mu is held.
func (cc *clientConn) clearBatch() {
	for i := range cc.sending {
		s := &cc.sending[i]
		if s.cut >= 0 {
			s.pc.giveBack()
		}
		switch {
		case !s.current(cc) || s.pc.phase == phase.Over:
		case cc.err != nil:
			s.pc.finish(cc.err)
		case s.pc.phase == phase.Batched:
			s.pc.phase.To(phase.Sent)
		}
	}
	clear(cc.sending)
	cc.sending = cc.sending[:0]
	cc.pushed = 0
	cc.out.reset()
}

// broken ends the connection after a failed write. Calls that were not written whole
// cannot have been executed, and may be sent again even if they must not be repeated.
func (cc *clientConn) broken(err error) {
	h := cc.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range cc.sending {
		if s := &cc.sending[i]; s.end > cc.pushed && s.current(cc) {
			s.pc.wrote = false
		}
	}
	if cc.stalled {
		err = errNotReading
	}
	cc.fail(lost(err))
	cc.clearBatch()
	cc.flushing, cc.writer = false, nil
}

// resume prepares an interrupted write to go on: callers whose try is over get their bulk
// back, and a copy of it is written instead. It returns false if the connection is over,
// or was stalled and the write has made no progress.
func (cc *clientConn) resume(progress bool) bool {
	h := cc.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if cc.err != nil || (cc.stalled && !progress) {
		return false
	}
	cc.undisturb()
	cc.began = h.clock()
	done := cc.out.written()
	for i := range cc.sending {
		s := &cc.sending[i]
		if s.cut < 0 || s.pc.phase != phase.Over {
			continue
		}
		if at := 2*s.cut + 1; at >= done {
			cc.out.segs[at] = append([]byte(nil), cc.out.segs[at]...)
		}
		s.cut = -1
		s.pc.giveBack()
	}
	return true
}

// passOn hands the writing to a goroutine if self's try is over.
func (cc *clientConn) passOn(self *call) bool {
	h := cc.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if self == nil || h.closed || self.phase != phase.Over {
		return false
	}
	cc.writer = nil
	h.wg.Add(1)
	go cc.carryOn()
	return true
}

// carryOn finishes a batch that a caller had begun to write, and then the queue.
func (cc *clientConn) carryOn() {
	defer cc.hub.wg.Done()
	for ok := cc.push(nil); ok && cc.take(nil, 1); ok = cc.push(nil) {
		cc.encode()
	}
}
