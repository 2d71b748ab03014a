package oncrpc

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// startRead begins a READ of 8 bytes.
func startRead(ctx context.Context, t *testing.T, c *Client) chan error {
	return begin(func() error {
		buf := make([]byte, 8)
		r, err := c.Call(ctx, proc(procRead), Auth{}, &readArgs{}, &readRes{Data: buf})
		r.Release()
		if err == nil && !bytes.Equal(buf, bytes.Repeat([]byte{7}, 8)) {
			t.Errorf("read %x", buf)
		}
		return err
	})
}

func (r *rawConn) answerRead() {
	r.t.Helper()
	xid, number, _ := r.call()
	if number != procRead {
		r.t.Errorf("procedure %d where reads were expected", number)
	}
	r.send(record(accepted(xid, join(words(0, 0, 8), bytes.Repeat([]byte{7}, 8), words(1)))))
}

// TestLanes: the first bulk goes over the one connection, and has another one dialed. From
// then on file data and other calls have connections of their own.
func TestLanes(t *testing.T) {
	s := newScript(t)
	var full atomic.Bool
	c := newClient(t, ClientOptions{Conns: 2, Dial: func(ctx context.Context) (net.Conn, error) {
		if full.Load() {
			return nil, errTest
		}
		return s.dial(ctx)
	}})
	done := startRead(t.Context(), t, c)
	meta := s.accept()
	meta.answerRead()
	if err := await(t, done); err != nil {
		t.Fatal(err)
	}
	done = startRead(t.Context(), t, c)
	meta.answerRead()
	if err := await(t, done); err != nil {
		t.Fatal(err)
	}
	bulk := s.accept()
	waitFor(t, "the second connection", func() bool { return c.Stats().Conns == 2 })
	done = startRead(t.Context(), t, c)
	bulk.answerRead()
	if err := await(t, done); err != nil {
		t.Fatal(err)
	}
	reads := []chan error{startRead(t.Context(), t, c), startRead(t.Context(), t, c)}
	for range 3 {
		done = begin(func() error { return callEcho(t.Context(), c, procOnce, "x") })
		meta.answer()
		if err := await(t, done); err != nil {
			t.Fatal(err)
		}
	}
	// What is lost with the connection is sent again on the other.
	full.Store(true)
	bulk.hangUp()
	meta.answerRead()
	meta.answerRead()
	for _, done := range reads {
		if err := await(t, done); err != nil {
			t.Fatal(err)
		}
	}
	if st := c.Stats(); st.Dials != 2 || st.Reconnects != 0 || st.Retransmits > 2 {
		t.Errorf("%+v", st)
	}
}

// TestLanesGrow: busy lanes get more connections, up to the bound. Idle lanes lose them.
func TestLanesGrow(t *testing.T) {
	inBubble(t, ClientOptions{Conns: 4}, 0, func(b *bubble) {
		first := b.met()
		serve := func(r *rawConn) {
			for {
				if _, err := r.receive(); err != nil {
					return
				}
			}
		}
		go serve(first)
		go func() {
			for nc := range b.conns {
				go serve(&rawConn{t: t, nc: nc, r: recordReader{src: nc, buf: make([]byte, 4096), ahead: 4096, max: 1 << 30}})
			}
		}()
		defer close(b.conns)
		ctx, cancel := context.WithCancel(b.t.Context())
		defer cancel()
		var calls []chan error
		for range 40 {
			calls = append(calls, startRead(ctx, b.t, b.c))
			time.Sleep(time.Millisecond)
		}
		if n := b.c.Stats().Conns; n != 4 {
			t.Errorf("%d connections for 40 reads", n)
		}
		b.c.mu.Lock()
		for _, cc := range b.c.conns {
			if cc.lane == bulkLane && cc.calls < 10 {
				t.Errorf("%d of 40 calls on one of 3 lanes", cc.calls)
			}
		}
		b.c.mu.Unlock()
		cancel()
		for _, done := range calls {
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled read: %v", err)
			}
		}
		time.Sleep(laneIdle + time.Second)
		if n := b.c.Stats().Conns; n != 1 {
			t.Errorf("%d connections after a minute", n)
		}
		time.Sleep(clientIdle)
		if n := b.c.Stats().Conns; n != 0 {
			t.Errorf("%d connections after six minutes", n)
		}
	})
}

// TestLanesRefused: a server that takes one connection only is not dialed in a tight loop,
// and no call waits for the second connection.
func TestLanesRefused(t *testing.T) {
	inBubble(t, ClientOptions{Conns: 4}, 0, func(b *bubble) {
		r := b.met()
		b.away.Store(true)
		for time.Since(b.start) < time.Minute {
			done := startRead(b.t.Context(), b.t, b.c)
			r.answerRead()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := b.c.Stats().DialErrors; n < 2 || n > uint64(time.Minute/growPause)+2 {
			t.Errorf("%d dials in vain", n)
		}
	})
}
