package oncrpc

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// bubble is a client in fake time, whose server's part the test plays on pipes.
type bubble struct {
	t     *testing.T
	c     *Client
	conns chan net.Conn
	start time.Time
	away  atomic.Bool // dials fail
}

// inBubble runs f in fake time and searches for losses afterwards. refuse is how
// many dials fail first.
func inBubble(t *testing.T, o ClientOptions, refuse int, f func(*bubble)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{t: t, conns: make(chan net.Conn, 64), start: time.Now()}
		o.Dial = func(context.Context) (net.Conn, error) {
			if b.away.Load() {
				return nil, errTest
			}
			if refuse > 0 {
				refuse--
				return nil, errTest
			}
			near, far := net.Pipe()
			b.conns <- far
			return near, nil
		}
		b.c = NewClient(o)
		f(b)
		if err := b.c.Close(); err != nil {
			t.Error(err)
		}
		for len(b.conns) > 0 {
			_ = (<-b.conns).Close() // nobody uses them
		}
		synctest.Wait()
		if st := b.c.Stats(); st.Buffers != 0 || st.InFlight != 0 || st.Conns != 0 {
			t.Errorf("client left things behind: %+v", st)
		}
	})
}

func (b *bubble) accept() *rawConn {
	nc := <-b.conns
	b.t.Cleanup(func() { _ = nc.Close() }) // most are closed by then
	return &rawConn{t: b.t, nc: nc, r: recordReader{src: nc, buf: make([]byte, 4096), ahead: 4096, max: 1 << 30}}
}

// passed checks how much time has passed since the start, up to some ticks.
func (b *bubble) passed(want time.Duration) {
	b.t.Helper()
	if d := time.Since(b.start); d < want || d > want+8*tickEvery {
		b.t.Errorf("%v have passed, want %v", d, want)
	}
}

// TestTimeoutResends has a server that sends nothing. The call is sent again with its number,
// on new connections, waits longer each time, and then fails.
func TestTimeoutResends(t *testing.T) {
	inBubble(t, ClientOptions{Timeout: 5 * time.Second, Retries: 5, FirstXID: 9}, 0, func(b *bubble) {
		done := begin(func() error { return callEcho(b.t.Context(), b.c, procEcho, "x") })
		for try, until := range []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second} {
			r := b.accept()
			if xid, _, _ := r.call(); xid != 9 {
				t.Errorf("try %d has number %d", try, xid)
			}
			if _, err := r.receive(); err == nil {
				t.Error("sent again on the same connection")
			}
			b.passed(until)
		}
		if err := <-done; !is(ErrTimeout)(err) || errors.Is(err, ErrUnknownOutcome) || errors.Is(err, ErrNotSent) {
			t.Errorf("error %v", err)
		}
		if st := b.c.Stats(); st.Timeouts != 3 || st.Retransmits != 2 || st.Dials != 3 {
			t.Errorf("%+v", st)
		}
	})
}

// TestTimeoutOnce is TestTimeoutResends with a call that may not be repeated.
func TestTimeoutOnce(t *testing.T) {
	inBubble(t, ClientOptions{Timeout: 5 * time.Second}, 0, func(b *bubble) {
		done := begin(func() error { return callEcho(b.t.Context(), b.c, procOnce, "x") })
		r := b.accept()
		r.call()
		if err := <-done; !is(ErrTimeout, ErrUnknownOutcome)(err) {
			t.Errorf("error %v", err)
		}
		b.passed(5 * time.Second)
		r.mustCloseNow()
	})
}

// mustCloseNow is mustClose without a deadline, for fake time.
func (r *rawConn) mustCloseNow() {
	if _, err := r.receive(); err == nil {
		r.t.Error("connection is not closed")
	}
}

// TestTimeoutSpares: a connection on which a call has timed out is kept for the calls that
// still wait, and gets no new ones. A late reply to the call that has left does not reach
// the caller's buffer.
func TestTimeoutSpares(t *testing.T) {
	inBubble(t, ClientOptions{Timeout: 10 * time.Second}, 0, func(b *bubble) {
		buf := make([]byte, 8)
		read := begin(func() error {
			r, err := b.c.Call(b.t.Context(), proc(procRead), Auth{}, &readArgs{}, &readRes{Data: buf})
			r.Release()
			return err
		})
		old := b.accept()
		first, _, _ := old.call()
		time.Sleep(6 * time.Second)
		other := begin(func() error { return callEcho(b.t.Context(), b.c, procEcho, "other") })
		second, _, args := old.call()
		fresh := b.accept() // when read times out
		b.passed(10 * time.Second)
		if again, _, _ := fresh.call(); again != first {
			t.Errorf("read has number %d, then %d", first, again)
		}
		bad := join(words(0, 0, 8), bytes.Repeat([]byte{0xbb}, 8), words(0))
		old.send(record(accepted(first, bad)))
		old.send(record(accepted(second, args)))
		if err := <-other; err != nil {
			t.Errorf("the other call: %v", err)
		}
		old.mustCloseNow()
		good := join(words(0, 0, 8), bytes.Repeat([]byte{0x11}, 8), words(0))
		fresh.send(record(accepted(first, good)))
		if err := <-read; err != nil || buf[0] != 0x11 {
			t.Errorf("read: %v, %x", err, buf)
		}
		if st := b.c.Stats(); st.Late != 1 || st.Dials != 2 {
			t.Errorf("%+v", st)
		}
	})
}

// TestDialFails checks how often and how fast a client dials in vain.
func TestDialFails(t *testing.T) {
	inBubble(t, ClientOptions{DialTries: 4}, 1000, func(b *bubble) {
		err := callEcho(b.t.Context(), b.c, procOnce, "x")
		if !is(ErrNoConnection, errTest)(err) || errors.Is(err, ErrUnknownOutcome) || !strings.Contains(err.Error(), "check that") {
			t.Errorf("error %v", err)
		}
		b.passed(backoffMin + 2*backoffMin + 4*backoffMin)
		if st := b.c.Stats(); st.DialErrors != 4 {
			t.Errorf("%+v", st)
		}
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Millisecond)
		defer cancel()
		if err := callEcho(ctx, b.c, procEcho, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cancelled while dialing: %v", err)
		}
	})
}

// TestDialBackoff keeps on calling for an hour a server that refuses.
func TestDialBackoff(t *testing.T) {
	inBubble(t, ClientOptions{}, 1<<30, func(b *bubble) {
		for time.Since(b.start) < time.Hour {
			if err := callEcho(b.t.Context(), b.c, procEcho, "x"); !errors.Is(err, ErrNoConnection) {
				t.Fatal(err)
			}
		}
		if n := b.c.Stats().DialErrors; n > uint64(time.Hour/backoffMax)+20 {
			t.Errorf("%d dials in an hour", n)
		}
	})
}

// TestDialRecovers dials in vain twice, then reaches the server.
func TestDialRecovers(t *testing.T) {
	inBubble(t, ClientOptions{}, 2, func(b *bubble) {
		done := begin(func() error { return callEcho(b.t.Context(), b.c, procOnce, "x") })
		r := b.accept()
		xid, _, args := r.call()
		r.send(record(accepted(xid, args)))
		if err := <-done; err != nil {
			t.Error(err)
		}
		b.passed(3 * backoffMin)
	})
}

// TestHangsUp has a server that accepts and hangs up, for an hour. Calls that were not written
// fail as such, and the client does not dial in a tight loop.
func TestHangsUp(t *testing.T) {
	inBubble(t, ClientOptions{}, 0, func(b *bubble) {
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			for {
				select {
				case nc := <-b.conns:
					_ = nc.Close() // that is the point
				case <-stop:
					return
				}
			}
		}()
		calls := 0
		for ; time.Since(b.start) < time.Hour; calls++ {
			if err := callEcho(b.t.Context(), b.c, procOnce, "x"); err == nil || errors.Is(err, ErrUnknownOutcome) {
				t.Fatal(err)
			}
		}
		if n := b.c.Stats().Dials; n > uint64(time.Hour/backoffMax)+20 {
			t.Errorf("%d connections in an hour", n)
		}
		if calls < 50 {
			t.Errorf("%d calls in an hour", calls)
		}
	})
}

// TestServerDoesNotRead has a server that reads nothing: calls time out, and the connection
// is closed.
func TestServerDoesNotRead(t *testing.T) {
	inBubble(t, ClientOptions{Timeout: 5 * time.Second, Retries: -1}, 0, func(b *bubble) {
		done := begin(func() error { return callEcho(b.t.Context(), b.c, procEcho, "x") })
		r := b.accept()
		if err := <-done; !errors.Is(err, ErrTimeout) {
			t.Errorf("error %v", err)
		}
		b.passed(5 * time.Second)
		r.mustCloseNow()
	})
}

// TestIdleClient: without calls there are no ticks, and after five minutes no connection. The
// next call dials.
func TestIdleClient(t *testing.T) {
	inBubble(t, ClientOptions{}, 0, func(b *bubble) {
		done := begin(func() error { return callEcho(b.t.Context(), b.c, procEcho, "x") })
		r := b.accept()
		xid, _, args := r.call()
		time.Sleep(time.Minute / 2)
		r.send(record(accepted(xid, args)))
		if err := <-done; err != nil {
			t.Error(err)
		}
		time.Sleep(clientIdle - time.Second)
		if n := b.c.Stats().Conns; n != 1 || b.c.ticks() {
			t.Errorf("%d connections; ticks: %v", n, b.c.ticks())
		}
		time.Sleep(2 * time.Second)
		if n := b.c.Stats().Conns; n != 0 {
			t.Errorf("%d connections after five minutes", n)
		}
		r.mustCloseNow()
		done = begin(func() error { return callEcho(b.t.Context(), b.c, procOnce, "y") })
		r = b.accept()
		xid, _, args = r.call()
		r.send(record(accepted(xid, args)))
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (c *Client) ticks() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ticking
}

// TestSlots: calls above the bound wait for a slot. Those that give up were never sent, and
// leave no slot taken.
func TestSlots(t *testing.T) {
	inBubble(t, ClientOptions{}, 0, func(b *bubble) {
		r := b.met()
		ctx, cancel := context.WithCancel(b.t.Context())
		defer cancel()
		var first, leave, stay []chan error
		for range maxInFlight {
			first = append(first, begin(func() error { return callEcho(b.t.Context(), b.c, procEcho, "x") }))
		}
		var ids []uint32
		for range first {
			xid, _, _ := r.call()
			ids = append(ids, xid)
		}
		for range 20 {
			leave = append(leave, begin(func() error { return callEcho(ctx, b.c, procOnce, "x") }))
			stay = append(stay, begin(func() error { return callEcho(b.t.Context(), b.c, procOnce, "x") }))
		}
		synctest.Wait()
		if n := b.c.Stats().InFlight; n != maxInFlight {
			t.Errorf("%d calls under way", n)
		}
		cancel()
		for _, done := range leave {
			if err := <-done; !is(context.Canceled, ErrNotSent)(err) {
				t.Errorf("error %v", err)
			}
		}
		for i, xid := range ids {
			r.send(record(accepted(xid, str("x"))))
			if i < len(stay) {
				r.answer()
			}
		}
		for _, done := range append(first, stay...) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}
