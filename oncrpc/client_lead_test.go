package oncrpc

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc/internal/socket"
)

// inFollowers waits until n callers follow on the first connection, and one leads.
func inFollowers(t *testing.T, c *Client, n int) {
	t.Helper()
	waitFor(t, "the callers to wait", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.conns) == 0 || c.conns[0].leader == nil {
			return false
		}
		have := 0
		for pc := c.conns[0].followers.newest(); pc != nil; pc = pc.older {
			have++
		}
		return have == n
	})
}

// TestNobodyReads: a call on a plain socket takes no goroutine, while it waits
// or afterwards.
func TestNobodyReads(t *testing.T) {
	s := newScript(t)
	if !socket.CanPeek {
		t.Skip("here a goroutine reads")
	}
	c := newClient(t, ClientOptions{Dial: s.dial})
	done := begin(func() error { return callEcho(t.Context(), c, procEcho, "x") })
	r := s.accept()
	xid, _, args := r.call()
	inFollowers(t, c, 0)
	c.mu.Lock()
	cc := c.conns[0]
	if cc.leader == nil || cc.leader.xid != xid {
		t.Error("the caller does not read its own reply")
	}
	c.mu.Unlock()
	r.send(record(accepted(xid, args)))
	if err := await(t, done); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cc.reading || cc.leader != nil {
		t.Error("somebody reads although nobody waits")
	}
}

// TestLeaderLeaves cancels the caller that reads, between replies and in the middle of
// another caller's. The next reader goes on where it was.
func TestLeaderLeaves(t *testing.T) {
	const size = 100 << 10
	data := bytes.Repeat([]byte{0x77}, size)
	for _, part := range []int{0, 3, 50, 600, size / 2, size + 40} {
		s := newScript(t)
		c := newClient(t, ClientOptions{Dial: s.dial})
		ctx, cancel := context.WithCancel(t.Context())
		leader := begin(func() error { return callEcho(ctx, c, procOnce, "leader") })
		r := s.accept()
		lead, _, args := r.call()
		if socket.CanPeek {
			inFollowers(t, c, 0)
		}
		buf := make([]byte, size)
		follower := begin(func() error {
			reply, err := c.Call(t.Context(), proc(procRead), Auth{}, &readArgs{}, &readRes{Data: buf})
			reply.Release()
			return err
		})
		read, _, _ := r.call()
		if socket.CanPeek {
			inFollowers(t, c, 1)
		}
		rec := record(pieces(accepted(read, join(words(0, 0, uint32(size)), data, words(1))), 30<<10)...)
		before := c.Stats().BytesIn
		r.send(rec[:part])
		waitFor(t, "the first part", func() bool { return c.Stats().BytesIn-before == uint64(part) })
		cancel()
		if err := await(t, leader); !is(context.Canceled, ErrUnknownOutcome)(err) {
			t.Errorf("leader, after %d bytes: %v", part, err)
		}
		r.send(rec[part:])
		if err := await(t, follower); err != nil || !bytes.Equal(buf, data) {
			t.Errorf("follower, after %d bytes: %v", part, err)
		}
		// The leader's reply is late. It is read although no call is under way.
		r.send(record(accepted(lead, args)))
		waitFor(t, "the late reply", func() bool { return c.Stats().Late == 1 })
		if st := c.Stats(); st.Dials != 1 || st.Conns != 1 {
			t.Errorf("%+v", st)
		}
	}
}

// TestIdleRestart has a server that closes an idle connection, or sends something unasked. A
// call that must not be repeated goes over a new one.
func TestIdleRestart(t *testing.T) {
	for name, end := range map[string]func(*rawConn){
		"closed":     func(r *rawConn) { r.hangUp() },
		"talkative":  func(r *rawConn) { r.send(words(1)) },
		"closed too": func(r *rawConn) { r.send(record(accepted(1, nil))); r.hangUp() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			c := newClient(t, ClientOptions{Dial: s.dial, Retries: -1})
			for i := range 3 {
				done := begin(func() error { return callEcho(t.Context(), c, procOnce, "x") })
				r := s.accept()
				r.answer()
				if err := await(t, done); err != nil {
					t.Fatalf("call %d: %v", i, err)
				}
				end(r)
				if !socket.CanPeek {
					waitFor(t, "the reader to notice", func() bool { return c.Stats().Conns == 0 })
					continue
				}
				c.mu.Lock()
				cc := c.conns[0]
				cc.heard -= time.Second
				c.mu.Unlock()
				waitFor(t, "the end to arrive", func() bool { return !cc.socket.Alive() })
			}
			if st := c.Stats(); st.Retransmits != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestLeaderTimesOut: the caller that reads times out as any other. Another one then reads.
func TestLeaderTimesOut(t *testing.T) {
	s := newScript(t)
	c := newClient(t, ClientOptions{Dial: s.dial, Retries: -1})
	first := begin(func() error { return callEcho(t.Context(), c, procEcho, "first") })
	r := s.accept()
	lead, _, _ := r.call()
	inFollowers(t, c, 0)
	second := begin(func() error { return callEcho(t.Context(), c, procEcho, "second") })
	xid, _, args := r.call()
	inFollowers(t, c, 1)
	c.ages(t, lead)
	if err := await(t, first); !errors.Is(err, ErrTimeout) {
		t.Errorf("first: %v", err)
	}
	r.send(record(accepted(xid, args)))
	if err := await(t, second); err != nil {
		t.Errorf("second: %v", err)
	}
	waitFor(t, "the connection to end", func() bool { return c.Stats().Conns == 0 })
}

// ages makes the leader overdue at the next tick. It is the call with that number.
func (c *Client) ages(t *testing.T, xid uint32) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	pc := c.slots[xid%slotCount]
	if pc == nil || c.conns[0].leader != pc {
		t.Fatal("the first call does not read")
	}
	pc.due = 0
}
