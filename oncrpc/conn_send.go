package oncrpc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
)

// This file sends. Calls stand in a queue; a caller that finds no writer at work
// becomes it, and writes everything that has gathered in one write, others'
// calls included.

// encodeError marks arguments that do not encode: another try would not help.
type encodeError struct{ err error }

func (e *encodeError) Error() string { return e.err.Error() }

func (e *encodeError) Unwrap() error { return e.err }

// enqueue puts pc in the queue, and says who writes. hub.mu is held.
func (cc *clientConn) enqueue(pc *call) {
	cc.enter(pc)
	pc.to(queued)
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

// flushAlone is a goroutine that writes what stands in the queue, after others have had
// their turn: they are about to call as well, or to be answered and then call. Letting
// them run first makes one write of many calls.
func (cc *clientConn) flushAlone() {
	defer cc.hub.wg.Done()
	runtime.Gosched()
	cc.flush(nil)
}

// flush writes what stands in the queue, until it is empty or somebody else has
// taken over. self is the caller who does it, or nil.
func (cc *clientConn) flush(self *call) {
	for round := 0; cc.take(self, round); round++ {
		cc.encode()
		if !cc.push(self) {
			return
		}
	}
}

// take ends the batch before, and moves calls from the queue to the writer.
// Without any, there is no writer from here on.
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
		pc.to(batched)
		pc.lent |= byWriter
		pc.wrote = true
		cc.sending = append(cc.sending, sending{pc: pc, xid: pc.xid, cut: -1})
	}
	cc.queue = slices.Delete(cc.queue, 0, n)
	return true
}

// encode builds the batch, and gives back the calls that it does not point into.
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
	now, before := h.moment(), int64(0)
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range cc.sending {
		s := &cc.sending[i]
		if s.err == nil {
			s.pc.left(now, s.end-before)
		} else {
			s.pc.wrote = false
			if s.pc.phase != over {
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

// append encodes one call. An encoder that panics does so among calls of others,
// whose goroutine this may be; the one who has passed it gets an error.
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

// push writes the batch, which take ends. It answers false if the writer's duty
// has passed to somebody else, or the connection is over.
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

// clientSink is a clientConn whose writes cannot be interrupted, as the writer's end
// of it. What is written in pieces is seen to move on.
type clientSink clientConn

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
		cc.began = cc.hub.moment()
		cc.hub.mu.Unlock()
	}
	return done, nil
}

// coalesce copies the batch's bulk for a writer that cannot be interrupted, and
// gives the calls back.
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

// finishBatch gives back what the batch pointed into. hub.mu is held.
func (cc *clientConn) finishBatch() {
	cc.undisturb()
	cc.began = 0
	cc.clearBatch()
}

// clearBatch ends the writer's hold on the calls in the batch, and finishes
// those that fail left to it. hub.mu is held.
func (cc *clientConn) clearBatch() {
	for i := range cc.sending {
		s := &cc.sending[i]
		if s.cut >= 0 {
			s.pc.giveBack()
		}
		switch {
		case !s.current(cc) || s.pc.phase == over:
		case cc.err != nil:
			s.pc.finish(cc.err)
		case s.pc.phase == batched:
			s.pc.to(sent)
		}
	}
	clear(cc.sending)
	cc.sending = cc.sending[:0]
	cc.pushed = 0
	cc.out.reset()
}

// broken ends the connection after a write that failed. Calls that were not
// written whole cannot be executed, and may be sent again whatever they are.
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

// resume puts an interrupted write in order: callers who want to leave get
// their bulk back, and what of it is not written yet goes on as a copy. It
// answers false if the connection has no future. progress says whether the
// write had moved before it was interrupted.
func (cc *clientConn) resume(progress bool) bool {
	h := cc.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if cc.err != nil || (cc.stalled && !progress) {
		return false
	}
	cc.undisturb()
	cc.began = h.moment()
	done := cc.out.written()
	for i := range cc.sending {
		s := &cc.sending[i]
		if s.cut < 0 || s.pc.phase != over {
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

// passOn hands the writer's duty to a goroutine if self wants to leave.
func (cc *clientConn) passOn(self *call) bool {
	h := cc.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if self == nil || h.closed || self.phase != over {
		return false
	}
	cc.writer = nil
	h.wg.Add(1)
	go cc.carryOn()
	return true
}

// carryOn finishes the batch that another had begun to write.
func (cc *clientConn) carryOn() {
	defer cc.hub.wg.Done()
	for ok := cc.push(nil); ok && cc.take(nil, 1); ok = cc.push(nil) {
		cc.encode()
	}
}
