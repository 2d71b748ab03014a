package oncrpc

import (
	"errors"
	"net"
	"os"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc/internal/phase"
	"github.com/nfsbox/nfsbox/oncrpc/internal/socket"
)

// This file says which goroutine reads. On a plain socket it is one of the callers that
// wait there: the leader. Its own reply costs no other goroutine, and one large read
// brings the replies of the others, the followers, which the leader wakes. When it has
// its reply and the buffer holds no other, it makes a follower the leader.
//
// Without followers the connection is not read, but in two cases, in which a goroutine of
// the client reads:
//   - replies are still to come for calls that are over (owed): a server that cannot
//     send them would hang up;
//   - a write makes no progress: perhaps the server waits for its replies to be read.
//
// A leader whose context ends, or whose try times out, is interrupted (conn_end.go). The
// next reader goes on where it was, be it in the middle of another caller's bulk.

// clientSource is a clientConn as the reader's source of bytes.
type clientSource clientConn

// Read reads from the connection. A passed deadline says that a caller wants to leave:
// the error is errBrokenOff if that is the reader, or the caller whose buffer it fills.
// The deadline is set and reset under hub.mu, so that no interruption is lost.
func (s *clientSource) Read(p []byte) (int, error) {
	cc := (*clientConn)(s)
	for {
		n, err := cc.stream.Read(p)
		if n > 0 {
			cc.heard = cc.hub.clock()
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

// interrupted resets the read deadline, and releases the call whose bulk is being read if
// that is over.
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
	detached := cc.sink != nil && cc.sink.phase == phase.Over
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

// readAlone is a goroutine that reads: for ever on a connection that callers do not
// read, else until handOver.
func (cc *clientConn) readAlone() {
	defer cc.hub.wg.Done()
	cc.read()
}

// read reads replies until the reader's duty or the connection is over. A leader that
// has its reply hands out first what stands in the buffer.
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

// handOver ends the duty of a reader and finds the next: a follower, or a goroutine if
// there is none and replies are owed or have begun. hub.mu is held.
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

// readInBackground starts a goroutine that reads. hub.mu is held.
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

// attend starts a reading goroutine if there is no reader: the callers that could read
// are writing. hub.mu is held.
func (cc *clientConn) attend() {
	if !cc.reading && cc.err == nil {
		cc.readInBackground()
	}
}

// watchReader interrupts the leader if its call is over. hub.mu is held.
func (cc *clientConn) watchReader() {
	if cc.leader != nil && cc.leader.phase == phase.Over {
		// An error means that the connection is closed: the read ends anyway.
		_ = cc.nc.SetReadDeadline(past)
	}
}

// attach makes nc a connection of lane l. hub.mu is held.
func (h *hub) attach(nc net.Conn, l lane) {
	cc := &clientConn{hub: h, nc: nc, stream: nc, socket: socket.Of(nc), lane: l, inline: socket.Vectored(nc),
		heard: h.clock(), idle: h.clock()}
	if cc.socket != nil {
		cc.led, cc.stream = true, cc.socket.ReadWriter
	}
	cc.window = h.pool.Get(min(clientReadBuffer, max(h.maxReply, smallRecord)))
	cc.r = recordReader{src: (*clientSource)(cc), buf: cc.window.B}
	h.conns = append(h.conns, cc)
	if !cc.led {
		cc.readInBackground()
	}
}

// leave takes pc off the connection. hub.mu is held.
func (cc *clientConn) leave(pc *call) {
	pc.conn = nil
	cc.calls--
	if pc.bulkRes != nil {
		cc.bulks.Add(-1)
	}
	if cc.calls > 0 {
		return
	}
	cc.idle = max(cc.hub.now, pc.gotAt)
	if cc.retired {
		cc.fail(errRetired)
	} else if cc.owed > 0 && !cc.reading {
		cc.handOver()
	}
}
