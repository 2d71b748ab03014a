package oncrpc

import (
	"fmt"
	"time"
)

// to moves the try on. hub.mu is held.
func (t *try) to(next phase) {
	if checkPhases && !t.phase.may(next) {
		panic(fmt.Sprintf("oncrpc: a call goes from %v to %v", t.phase, next))
	}
	t.phase = next
}

// idle reports whether the try is over and no part of the call is lent. hub.mu is held.
func (pc *call) idle() bool { return pc.phase == over && pc.lent == 0 }

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
	if pc == nil || pc.xid != cc.xid || pc.conn != cc || pc.phase == queued || pc.phase == over {
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
