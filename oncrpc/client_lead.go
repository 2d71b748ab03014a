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
// filling. The deadline is set and reset under Client.mu, so that no wish gets
// lost.
func (s *clientSource) Read(p []byte) (int, error) {
	cc := (*clientConn)(s)
	for {
		n, err := cc.stream.Read(p)
		if n > 0 {
			cc.heard = cc.c.moment()
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

// interrupted resets the read deadline and lets callers go that asked for it.
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
	cc.judge()
	detached := cc.sink != nil && cc.sink.phase == over
	if detached {
		cc.release(cc.sink)
		cc.stage = inSkip
		c.stats.Late++
	}
	if detached || cc.over {
		return errBrokenOff
	}
	return nil
}

// judge notes whether the reader has done what he is here for: a leader when his
// call is over, a goroutine when nothing is owed. Client.mu is held.
func (cc *clientConn) judge() {
	if cc.leader != nil {
		cc.over = cc.leader.phase == over
	} else {
		cc.over = cc.led && cc.owed == 0 && cc.began == 0
	}
}

// readAlone is a goroutine that reads: all the time where callers do not, and
// else while somebody has to.
func (cc *clientConn) readAlone() {
	defer cc.c.wg.Done()
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
	c := cc.c
	c.mu.Lock()
	defer c.mu.Unlock()
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
// goroutine if nobody waits and there is something to read. Client.mu is held.
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
// Client.mu is held.
func (cc *clientConn) appoint(pc *call) { cc.reading, cc.leader, cc.over = true, pc, false }

// readInBackground has a goroutine read. Client.mu is held.
func (cc *clientConn) readInBackground() {
	cc.appoint(nil)
	cc.c.wg.Add(1)
	go cc.readAlone()
}

// dismiss gives back what readers use, after the connection's end. Client.mu is
// held.
func (cc *clientConn) dismiss() {
	cc.reading, cc.leader = false, nil
	cc.reply.drop()
	if cc.window != nil {
		cc.window.Release()
		cc.window = nil
	}
}

// takesLead makes pc the leader if there is no reader. Client.mu is held.
func (cc *clientConn) takesLead(pc *call) bool {
	if cc.reading || cc.err != nil {
		return cc.leader == pc
	}
	cc.appoint(pc)
	return true
}

// callList is a list of calls, the newest last.
type callList struct{ last *call }

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
