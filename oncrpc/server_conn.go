package oncrpc

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// serverConn is one connection of a server. Its goroutine reads calls, workers
// execute them (see work); replies gather in out, and a goroutine that finds no writer at
// work writes all that is there in one write.
type serverConn struct {
	s             *Server
	remote, local net.Addr
	state         any
	ctx           context.Context // of the handlers
	cancel        context.CancelFunc
	stop          chan struct{} // closed when reading has to end
	client        ClientReplies // nil: the server has no Replies; set by serve, under mu
	serial        uint64        // rises from one connection to the next
	share         string        // ShareOf remote
	stranger      bool          // not admitted when it came; guarded by Server.mu
	debtor        *debtor       // the client at the server's budget
	aside         *debtor       // and at that of those who are not admitted
	opened        time.Time

	bytesIn, bytesOut atomic.Uint64

	// The reader's.
	r         recordReader
	arrived   time.Duration // when the last bytes did, on the server's clock
	secured   bool
	began     time.Time  // when the record that is arriving did; without what it has waited; zero: none has
	receiving *allowance // of that record; nil: it has none

	mu       sync.Mutex
	fewer    sync.Cond // calls has fallen, or the connection is over
	nc       net.Conn
	err      error // why the connection is over
	draining bool
	eof      bool      // the client has closed its side
	calls    int       // read, and the reply not yet written
	total    uint64    // read
	active   time.Time // when something was last read or answered
	out      *batch    // replies that wait
	waiting  int       // how many
	flushing bool
	ready    []*Call // read, and not yet begun, from taken on
	taken    int
	pending  bool   // a worker is on its way
	worker   func() // work; bound once, so that starting one does not allocate
	spare    *batch // for out, while out is written
}

func newServerConn(s *Server, nc net.Conn, remote net.Addr, share string) *serverConn {
	sc := &serverConn{s: s, nc: nc, share: share, remote: remote, local: nc.LocalAddr(),
		stop: make(chan struct{}), opened: time.Now(), out: &batch{}, spare: &batch{}}
	sc.active = sc.opened
	sc.fewer.L = &sc.mu
	sc.worker = sc.work
	sc.ctx, sc.cancel = context.WithCancel(s.ctx)
	if s.o.Replies != nil {
		sc.serial = s.o.Replies.Serial()
	}
	return sc
}

// serve is the connection's life.
func (sc *serverConn) serve() {
	s := sc.s
	defer s.wg.Done()
	defer sc.cancel()
	sc.debtor, sc.aside = s.budget.join(sc.share), s.aside.join(sc.share)
	defer s.budget.leave(sc.debtor)
	defer s.aside.leave(sc.aside)
	if r := s.o.Replies; r != nil {
		m := r.Client(sc.remote)
		defer m.Release()
		sc.mu.Lock()
		sc.client = m
		sc.mu.Unlock()
	}
	err := sc.open()
	if err == nil && !s.join(sc) {
		err = errEvicted
	}
	if err == nil {
		window := s.pool.Get(serverReadBuffer)
		sc.r = recordReader{src: (*serverSource)(sc), buf: window.B, ahead: serverReadBuffer, max: s.o.MaxRecord}
		err = sc.readCalls()
		window.Release()
		sc.finish(err)
		if s.o.EndConn != nil {
			s.o.EndConn(sc.state)
		}
	} else {
		s.stats.refused.Add(1)
		sc.fail(err)
	}
	s.mu.Lock()
	s.remove(sc)
	s.mu.Unlock()
}

// open prepares the connection for use.
func (sc *serverConn) open() error {
	if t, ok := sc.nc.(*net.TCPConn); ok {
		if err := t.SetNoDelay(!sc.s.o.nagle); err != nil {
			return err
		}
	}
	if sc.s.o.NewConn == nil {
		return nil
	}
	state, err := sc.s.o.NewConn(sc.remote, sc.local)
	sc.state = state
	return err
}

// finish ends the connection for which reading ended with err. Neither a server
// that shuts down nor a client that has merely closed its side, and has not long
// to wait, loses a reply.
func (sc *serverConn) finish(err error) {
	switch {
	case errors.Is(err, io.EOF):
		// It may be gone altogether. Handlers that wait for something must not
		// wait for its sake for ever.
		sc.mu.Lock()
		sc.eof = true
		sc.mu.Unlock()
		defer time.AfterFunc(sc.s.o.linger, func() { sc.fail(err) }).Stop()
	case !errors.Is(err, errDraining):
		sc.fail(err)
	}
	sc.await(0)
	if errors.Is(err, errDraining) {
		sc.linger()
	}
	sc.fail(err)
}

// linger says that nothing more comes, and reads until the client says so, too.
func (sc *serverConn) linger() {
	half, ok := sc.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || sc.nc.SetReadDeadline(time.Now().Add(sc.s.o.linger)) != nil {
		return
	}
	if sc.over() {
		return // Close came between, and must not wait for the deadline
	}
	_, _ = io.Copy(io.Discard, sc.nc) // the client's end, the deadline or Close: all the same
}

// await waits until at most n calls are under way. It answers false if the
// connection is over.
func (sc *serverConn) await(n int) bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.calls > n {
		// Some of them may wait for the reader itself to send their replies.
		sc.mu.Unlock()
		sc.flush()
		sc.mu.Lock()
	}
	for sc.calls > n {
		sc.fewer.Wait()
	}
	return sc.err == nil
}

func (sc *serverConn) context() context.Context { return sc.ctx }

// Gone reports whether the client has closed its side, or the connection is lost.
func (sc *serverConn) Gone() bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.err != nil || sc.eof
}

// over reports whether the connection has ended.
func (sc *serverConn) over() bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.err != nil
}

// fail ends the connection; only the first reason counts. Replies that wait are
// dropped by the goroutine that would have written them; calls that other connections have
// executed are not waited for.
func (sc *serverConn) fail(err error) {
	sc.mu.Lock()
	m := sc.client
	if sc.err == nil {
		sc.cut(err)
	}
	sc.mu.Unlock()
	if m != nil {
		m.Leave(sc)
	}
}

// cut closes the connection. sc.mu is held.
func (sc *serverConn) cut(err error) {
	sc.err = err
	sc.halt()
	sc.cancel()
	sc.fewer.Broadcast()
	if vectored(sc.nc) {
		_ = sc.nc.Close() // nothing was promised that the error could break
		return
	}
	// TLS says good-bye, and may wait for room to do so.
	nc := sc.nc
	sc.s.wg.Add(1)
	go func() {
		defer sc.s.wg.Done()
		_ = nc.Close() // as above
	}()
}

// drain ends reading, and with it, in good order, the connection.
func (sc *serverConn) drain() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.draining = true
	sc.halt()
	_ = sc.nc.SetReadDeadline(past) // on a closed connection there is nothing to end
}

// halt closes stop, once. sc.mu is held.
func (sc *serverConn) halt() {
	select {
	case <-sc.stop:
	default:
		close(sc.stop)
	}
}

// silentSince answers when the connection last said something, and whether it
// may be closed to make room.
func (sc *serverConn) silentSince() (time.Time, bool) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.active, sc.calls == 0 && sc.err == nil && !sc.draining
}

// serverSource is a serverConn as the reader's source of bytes.
type serverSource serverConn

// Read reads from the connection. Before it may block it sends the replies that
// the reader itself has given.
func (s *serverSource) Read(p []byte) (int, error) {
	sc := (*serverConn)(s)
	sc.flushOwn()
	for again := false; ; again = true {
		nc, err := sc.setDeadline(again)
		if err != nil {
			return 0, err
		}
		n, err := nc.Read(p)
		if n > 0 {
			sc.s.stats.bytesIn.Add(uint64(n))
			sc.bytesIn.Add(uint64(n))
			if sc.receiving != nil {
				sc.receiving.got.Add(int64(n))
			}
			sc.arrived = sc.s.clock()
			return n, nil
		}
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if err := sc.expired(); err != nil {
			return 0, err
		}
	}
}

// setDeadline arms the deadline of one read: the record's, or that of silence.
func (sc *serverConn) setDeadline(again bool) (net.Conn, error) {
	now := time.Now()
	until := now.Add(sc.s.o.IdleTimeout)
	if !sc.r.idle() {
		if sc.began.IsZero() {
			sc.began = now
		}
		until = sc.began.Add(sc.s.o.HeadTimeout + time.Duration(sc.r.have()/leastRate)*time.Second)
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.err != nil {
		return nil, sc.err
	}
	if sc.draining {
		return nil, errDraining
	}
	if !again {
		sc.active = now
	}
	return sc.nc, sc.nc.SetReadDeadline(until)
}

// expired says what a passed deadline means: nil is that the client is silent
// because it waits for us, or has done so until lately.
func (sc *serverConn) expired() error {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	switch {
	case sc.err != nil:
		return sc.err
	case sc.draining:
		return errDraining
	case !sc.r.idle():
		return errSlow
	case sc.calls > 0 || time.Since(sc.active) < sc.s.o.IdleTimeout:
		return nil
	}
	return errIdle
}

// readCalls reads calls and starts them until the connection is over.
func (sc *serverConn) readCalls() error {
	for {
		if !sc.await(sc.window()) {
			return errConnGone
		}
		sc.began, sc.receiving = time.Time{}, nil
		if err := sc.r.begin(); err != nil {
			return ifEnd(err, errCutMessage)
		}
		c := sc.s.newCall(sc)
		c.Remote, c.Local, c.State = sc.remote, sc.local, sc.state
		rec := sc.s.pool.Get(min(sc.r.left, smallRecord))
		rec.B = rec.B[:0]
		var err error
		if c.rec, err = sc.r.rest(&sc.s.pool, rec, c); err == nil {
			if c.allowance.held > 0 {
				c.allowance.whole.Store(true)
			}
			err = sc.start(c)
		} else {
			c.free()
		}
		if err != nil {
			return err
		}
	}
}

// window is how many calls may be under way when one more is read.
func (sc *serverConn) window() int {
	if sc.s.underWay.Load() >= int64(sc.s.o.MaxCalls) {
		return 0
	}
	return sc.s.o.MaxCallsPerConn - 1
}

// admit takes what a growing request may need from the server's budget, or of one
// that the server does not admit from what there is for those. For what it waits here
// the sender is not to blame.
func (c *Call) admit(n int) error {
	sc := c.to.(*serverConn)
	if c.allowance.held > 0 {
		return nil // all that it may come to need
	}
	sc.flush()
	by := sc.debtor
	if !sc.s.admits(sc.state) {
		by = sc.aside
	}
	c.allowance.conn, c.allowance.since = sc, sc.arrived
	waited, ok := by.of.take(by, &c.allowance, room(n), sc.stop)
	if !ok {
		return errDraining
	}
	if waited && !sc.began.IsZero() { // else it stood in the buffer, and no read has been waited for
		sc.began = sc.began.Add(sc.s.clock() - sc.arrived)
	}
	sc.receiving = &c.allowance
	return nil
}

// tooSlow closes the connection: others wait for the memory of what it sends.
func (sc *serverConn) tooSlow() { sc.fail(errSlow) }

var _ admitter = (*Call)(nil)

// begun counts a call as under way.
func (sc *serverConn) begun() {
	sc.s.underWay.Add(1)
	sc.mu.Lock()
	sc.calls++
	sc.total++
	sc.mu.Unlock()
}

// ended counts n calls as over. sc.mu is held.
func (sc *serverConn) ended(n int) {
	sc.s.underWay.Add(-int64(n))
	sc.calls -= n
	sc.fewer.Signal()
}
