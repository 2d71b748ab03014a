package oncrpc

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc/internal/socket"
)

// This file ends connections, and sends replies.

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

// fail ends the connection. Only the first reason counts. The goroutine that would have
// written the replies that wait drops them. Calls that have joined those of other
// connections end (ClientReplies.Leave).
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
	if socket.Vectored(sc.nc) {
		_ = sc.nc.Close() // the connection is lost in any case
		return
	}
	// TLS sends an alert, and may wait for room to do so.
	nc := sc.nc
	sc.s.wg.Add(1)
	go func() {
		defer sc.s.wg.Done()
		_ = nc.Close() // as above
	}()
}

// drain ends reading: the connection ends when all its calls are answered, or when the
// client does not take the replies.
func (sc *serverConn) drain() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.draining.Store(true)
	sc.halt()
	_ = sc.nc.SetReadDeadline(past) // on a closed connection there is nothing to end
	if socket.Vectored(sc.nc) {
		_ = sc.nc.SetWriteDeadline(time.Now().Add(sc.s.o.drainWrite())) // as above
	}
}

// drainWrite is how long a client may take for minWriteProgress when the server is ending.
func (o *ServerOptions) drainWrite() time.Duration { return min(o.WriteTimeout, o.drain) }

// halt closes stop, once. sc.mu is held.
func (sc *serverConn) halt() {
	select {
	case <-sc.stop:
	default:
		close(sc.stop)
	}
}

// silentSince is when something was last read or answered, and whether the connection may
// be closed to make room: no call is under way.
func (sc *serverConn) silentSince() (time.Time, bool) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.active, sc.calls == 0 && sc.err == nil && !sc.draining.Load()
}

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

// Unanswered ends a call without a reply.
func (sc *serverConn) Unanswered() { sc.enqueue(answered{}) }

// enqueue hands a call's reply to the next writer. If there is no reply, or the connection
// is over, the call ends here.
func (sc *serverConn) enqueue(a answered) {
	if a.buf != nil && sc.accepts(&a) {
		return
	}
	a.drop()
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.ended(1)
}

// accepts puts a reply in the queue, unless the connection is over.
func (sc *serverConn) accepts(a *answered) bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.err != nil {
		return false
	}
	sc.waiting++
	b, rec := sc.out, a.buf
	switch {
	case a.bulk != nil:
		b.head = append(b.head, rec.B[:a.at]...)
		b.bulk(a.bulk, a.owner)
		b.head = append(b.head, rec.B[a.at:]...)
	case len(rec.B) > inlineReply:
		b.bulk(rec.B, rec)
		return true
	default:
		b.head = append(b.head, rec.B...)
	}
	rec.Release()
	return true
}

// flush writes the replies that wait, unless another goroutine is writing: that one then
// writes these as well.
func (sc *serverConn) flush() {
	sc.mu.Lock()
	if sc.flushing || sc.waiting == 0 {
		sc.mu.Unlock()
		return
	}
	sc.flushing = true
	company := sc.calls > sc.waiting
	sc.mu.Unlock()
	if company {
		// Other calls are about to be answered. If they run first, one write takes many
		// replies.
		runtime.Gosched()
	}
	for sc.flushOnce() {
	}
}

// flushOnce writes one batch, or drops it if the connection is over. It returns false if
// there was none; then there is no writer any more.
func (sc *serverConn) flushOnce() bool {
	sc.mu.Lock()
	b, n, nc := sc.out, sc.waiting, sc.nc
	if n == 0 {
		sc.flushing = false
		sc.mu.Unlock()
		return false
	}
	sc.out, sc.spare, sc.waiting = sc.spare, nil, 0
	err := sc.err
	sc.mu.Unlock()
	if err == nil {
		err = sc.write(nc, b)
	}
	b.reset()
	if err != nil {
		sc.fail(err)
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.spare = b
	sc.active = time.Now()
	sc.ended(n)
	return true
}

// write writes the batch. If the client takes less than minWriteProgress in WriteTimeout,
// or in drainWriteTime when the server is ending, the error ends its connection.
func (sc *serverConn) write(nc net.Conn, b *batch) error {
	b.seal()
	resumable := socket.Vectored(nc)
	if !resumable {
		if copied := b.coalesce(&sc.s.pool); copied != nil {
			defer copied.Release()
		}
	}
	for {
		if err := nc.SetWriteDeadline(time.Now().Add(sc.s.o.WriteTimeout)); err != nil {
			return err
		}
		if resumable && sc.draining.Load() { // drain may have set its deadline before this one
			if err := nc.SetWriteDeadline(time.Now().Add(sc.s.o.drainWrite())); err != nil {
				return err
			}
		}
		n, err := b.write(nc, nc)
		sc.s.stats.bytesOut.Add(uint64(n))
		sc.bytesOut.Add(uint64(n))
		if err == nil {
			return nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		// A TLS connection does not survive an interrupted write.
		if !resumable || n < minWriteProgress {
			return errNotTaking
		}
	}
}
