package oncrpc

import (
	"errors"
	"os"
	"time"
)

// This file says who reads. On a plain socket it is one of the callers who wait
// there, the leader: his own reply costs no other goroutine, and one large read
// brings those of the others, the followers, which he wakes. When he has his
// reply, and no other stands in the buffer, he hands over to a follower. Without
// one nobody reads: a goroutine does only while replies are owed to callers who
// have left, since a server that cannot get rid of those would hang up; to callers
// who wait for others of their calls on another connection, since those would time
// out; and while a write does not move on, since it might be for want of a reader.
//
// A leader whose context ends, or whose try times out, is interrupted in his
// read as others are (client_interrupt.go); what he was reading, be it the
// middle of somebody's bulk, is carried on by the next reader.

// clientSource is a clientConn as the reader's source of bytes.
type clientSource clientConn

// Read reads from the connection. A passed deadline says that a caller wants to
// leave: the answer is errBrokenOff if that concerns the reader or what he is
// filling. The deadline is set and reset under hub.mu, so that no wish gets
// lost.
func (s *clientSource) Read(p []byte) (int, error) {
	cc := (*clientConn)(s)
	for {
		n, err := cc.stream.Read(p)
		if n > 0 {
			cc.heard = cc.hub.moment()
			cc.hub.bytesIn.Add(uint64(n))
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

// interrupted resets the read deadline and lets callers go that asked for it.
func (cc *clientConn) interrupted() error {
	h := cc.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if cc.err != nil {
		return cc.err
	}
	if err := cc.nc.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	cc.judge()
	detached := cc.sink != nil && cc.sink.phase == over
	if detached {
		cc.release(cc.sink)
		cc.stage = inSkip
		h.late++
	}
	if detached || cc.over {
		return errBrokenOff
	}
	return nil
}

// readAlone is a goroutine that reads: all the time where callers do not, and
// else while somebody has to.
func (cc *clientConn) readAlone() {
	defer cc.hub.wg.Done()
	cc.read()
}

// read reads replies until the reader's duty or the connection is over. A leader
// whose reply has come deals with those of others that have come with it.
func (cc *clientConn) read() {
	var err error
	for err == nil && (!cc.over || cc.r.buffered()) {
		if cc.handTogether() {
			continue
		}
		err = cc.step()
		if errors.Is(err, errBrokenOff) && !cc.over {
			err = nil
		}
	}
	h := cc.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil || errors.Is(err, errBrokenOff) {
		cc.handOver()
		return
	}
	cc.blame(err)
	cc.fail(lost(err))
	if cc.sink != nil {
		cc.release(cc.sink)
	}
	cc.dismiss()
}

// handOver ends the duty of a reader, and finds the next: a follower, or a
// goroutine if nobody waits and there is something to read. hub.mu is held.
func (cc *clientConn) handOver() {
	if cc.err != nil {
		cc.dismiss()
		return
	}
	next := cc.followers.newest()
	switch {
	case next != nil:
		cc.appoint(next)
		next.signal()
	case cc.owed > 0 || !cc.r.idle():
		cc.readInBackground()
	default:
		cc.reading, cc.leader = false, nil
	}
}

// appoint makes the caller of pc the reader, or a goroutine if pc is nil.
// hub.mu is held.
func (cc *clientConn) appoint(pc *call) { cc.reading, cc.leader, cc.over = true, pc, false }

// readInBackground has a goroutine read. hub.mu is held.
func (cc *clientConn) readInBackground() {
	cc.appoint(nil)
	cc.hub.wg.Add(1)
	go cc.readAlone()
}

// takesLead makes pc the leader if there is no reader. hub.mu is held.
func (cc *clientConn) takesLead(pc *call) bool {
	if cc.reading || cc.err != nil {
		return cc.leader == pc
	}
	cc.appoint(pc)
	return true
}

// attend has somebody read although no caller does: those who could are writing, or
// wait on another connection. hub.mu is held.
func (cc *clientConn) attend() {
	if !cc.reading && cc.err == nil {
		cc.readInBackground()
	}
}

// watchReader frees a caller from reading when its call is over. hub.mu is
// held.
func (cc *clientConn) watchReader() {
	if cc.leader != nil && cc.leader.phase == over {
		// An error means that the connection is closed: the read ends anyway.
		_ = cc.nc.SetReadDeadline(past)
	}
}
