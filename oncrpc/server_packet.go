package oncrpc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc/internal/budget"
)

// datagram leads back to where a call in a datagram came from.
type datagram struct {
	p      *packetConn
	from   net.Addr      // where the reply goes
	remote net.Addr      // the client's: see ServerOptions.Peer
	client ClientReplies // released with the call
	state  any
	share  string
	shares bool // it is counted in packetConn.shares
}

// ServePacket answers calls that come to pc in datagrams, as UDP clients send them, until
// Shutdown or Close. These close pc, and ServePacket returns [ErrServerClosed]. A pc that
// fails for good ends it, too. Services and reply cache are those of connections. NewConn
// is called for each call, since no datagram says that it was the last. What is no call
// gets no answer.
func (s *Server) ServePacket(pc net.PacketConn) error {
	p := &packetConn{s: s, pc: pc, stop: make(chan struct{}), running: make(chan struct{}, maxDatagramCalls), shares: make(map[string]int)}
	if !s.trackPackets(p) {
		return errors.Join(ErrServerClosed, pc.Close())
	}
	defer s.wg.Done()
	err := p.serve()
	for range cap(p.running) {
		p.running <- struct{}{} // replies of calls under way still leave
	}
	s.mu.Lock()
	delete(s.packets, p)
	s.mu.Unlock()
	if closing := pc.Close(); closing != nil && !errors.Is(closing, net.ErrClosed) {
		err = errors.Join(err, closing)
	}
	return err
}

func (s *Server) trackPackets(p *packetConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ending {
		s.packets[p] = struct{}{}
		s.wg.Add(1)
	}
	return !s.ending
}

// halt ends reading. It may be called more than once. Server.mu is held.
func (p *packetConn) halt() {
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
	_ = p.pc.SetReadDeadline(past) // on a closed socket reading ends anyway
}

// serve reads calls and starts them.
func (p *packetConn) serve() error {
	s := p.s
	window := s.pool.Get(maxDatagram)
	defer window.Release()
	for pause := time.Duration(0); ; {
		select {
		case p.running <- struct{}{}:
		case <-p.stop:
			return ErrServerClosed
		}
		n, from, err := p.pc.ReadFrom(window.B)
		if err == nil {
			pause = 0
			s.stats.bytesIn.Add(uint64(n))
			p.take(window.B[:n], from)
			continue
		}
		<-p.running
		switch {
		case s.closing():
			return ErrServerClosed
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("oncrpc: socket %v: %w", p.pc.LocalAddr(), err)
		}
		pause = min(max(2*pause, acceptPauseMin), acceptPauseMax)
		s.o.Log.Error("reading a datagram failed, trying again", "socket", p.pc.LocalAddr(), "err", err, "pause", pause)
		if !s.sleep(pause) {
			return ErrServerClosed
		}
	}
}

// take begins to serve one datagram. The token in running is its call's from here on.
func (p *packetConn) take(msg []byte, from net.Addr) {
	s := p.s
	d := &datagram{p: p, from: from, remote: s.peer(nil, from, p.pc.LocalAddr())}
	c := s.newCall(d)
	c.Remote, c.Local = d.remote, p.pc.LocalAddr()
	c.arrived = s.clock()
	c.rec = s.pool.Get(len(msg))
	copy(c.rec.B, msg)
	_, err := c.decode()
	if err != nil && !isAnswer(err) {
		c.free()
		d.Unanswered()
		return
	}
	if err == nil && c.Auth.Flavor == AuthTLS {
		// Only streams have TLS here.
		err = &DeniedError{Stat: AuthRejected, Auth: AuthRejectedCred}
	}
	if err != nil || c.handler == nil {
		c.conclude(err)
		return
	}
	if s.o.NewConn != nil {
		if d.state, err = s.o.NewConn(d.remote, c.Local); err != nil {
			s.stats.refused.Add(1)
			c.conclude(ErrDrop)
			return
		}
	}
	c.State = d.state
	if !d.join() {
		c.conclude(ErrDrop)
		return
	}
	if r := s.o.Replies; r != nil && c.once.is {
		d.client = r.Client(d.remote)
		c.once.client, c.once.serial = d.client, r.Serial()
	}
	go func() {
		to, _ := c.run()
		to.flush()
	}()
}

// join counts a call as its client's. It returns false if the client has its share
// (budget.Fair).
func (d *datagram) join() bool {
	p := d.p
	if p.s.admits(d.state) {
		d.share = ShareOf(d.remote)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !budget.Fair(int64(p.shares[d.share]), 1, int64(maxDatagramCalls-p.calls)) {
		return false
	}
	p.shares[d.share]++
	p.calls++
	d.shares = true
	return true
}

// leave ends what join began.
func (d *datagram) leave() {
	p := d.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if !d.shares {
		return
	}
	p.calls--
	if p.shares[d.share]--; p.shares[d.share] == 0 {
		delete(p.shares, d.share)
	}
}

func (d *datagram) context() context.Context { return d.p.s.ctx }

// Gone returns false: a datagram has no other end that could close.
func (d *datagram) Gone() bool { return false }

// Unanswered ends the call without a reply.
func (d *datagram) Unanswered() { d.enqueue(answered{}) }

// flush does nothing: enqueue has sent the reply.
func (d *datagram) flush() {}

// enqueue sends the reply, if there is one. A failure is counted and not logged: a sender
// that forges its address can cause as many as it likes.
func (d *datagram) enqueue(a answered) {
	s := d.p.s
	if a.buf != nil {
		if err := d.send(&a); err != nil {
			s.stats.unsent.Add(1)
		}
	}
	a.drop()
	if d.client != nil {
		d.client.Release()
	}
	d.leave()
	<-d.p.running
}

// send writes the reply as one datagram. In place of one that is too long the client gets
// SYSTEM_ERR.
func (d *datagram) send(a *answered) error {
	s := d.p.s
	if a.length() > maxDatagramReply {
		xid := binary.BigEndian.Uint32(a.buf.B[markBytes:])
		a.drop()
		a.buf = s.pool.Get(0)
		a.buf.B = appendError(beginRecord(a.buf.B[:0]), xid, &AcceptError{Stat: SystemErr})
		s.stats.failed.Add(1)
	}
	msg := a.buf.B[markBytes:]
	if a.bulk != nil {
		whole := s.pool.Get(a.length())
		defer whole.Release()
		msg = append(append(append(whole.B[:0], a.buf.B[markBytes:a.at]...), a.bulk...), a.buf.B[a.at:]...)
	}
	if err := d.p.pc.SetWriteDeadline(time.Now().Add(s.o.WriteTimeout)); err != nil {
		return err
	}
	n, err := d.p.pc.WriteTo(msg, d.from)
	s.stats.bytesOut.Add(uint64(n))
	return err
}
