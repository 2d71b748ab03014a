package oncrpc

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/xdr"
)

// answer reads one call and answers it as ECHO does.
func (r *rawConn) answer() (xid uint32) {
	r.t.Helper()
	xid, _, args := r.call()
	r.send(record(accepted(xid, args)))
	return xid
}

func (r *rawConn) hangUp() {
	r.t.Helper()
	if err := r.nc.Close(); err != nil {
		r.t.Fatal(err)
	}
}

// met makes a first call, so that the client knows that there is a server.
func (b *bubble) met() *rawConn {
	b.t.Helper()
	done := begin(func() error { return callEcho(b.t.Context(), b.c, procEcho, "first") })
	r := b.accept()
	r.answer()
	if err := <-done; err != nil {
		b.t.Fatal(err)
	}
	return r
}

// TestServerAway has a server that goes away with a call in hand, refuses connections, takes
// some and closes them, and comes back before the call's patience is over. The call
// succeeds, and only the log says what happened.
func TestServerAway(t *testing.T) {
	for name, o := range map[string]ClientOptions{
		"soft": {Timeout: 10 * time.Second, Retries: 2},
		"hard": {Timeout: time.Second, Retries: 1, Hard: true},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			inBubble(t, o, 0, func(b *bubble) {
				r := b.met()
				var reply Reply
				done := begin(func() (err error) {
					reply, err = b.c.Call(b.t.Context(), proc(procEcho), Auth{}, &opaque{b: []byte("x")}, &opaque{})
					reply.Release()
					return err
				})
				first, _, _ := r.call()
				b.away.Store(true)
				r.hangUp()
				time.Sleep(10 * time.Second)
				b.away.Store(false)
				for range 5 {
					b.accept().hangUp()
				}
				time.Sleep(time.Second / 2)
				if again := b.accept().answer(); again != first {
					t.Errorf("number %d, then %d", first, again)
				}
				if err := <-done; err != nil || !reply.Resent || reply.Took <= 0 {
					t.Errorf("%+v, error %v", reply, err)
				}
				time.Sleep(time.Second)
			})
			for _, line := range []string{"level=WARN msg=\"server not responding, still trying\" server=pipe", "level=INFO msg=\"server OK\" server=pipe",
				"level=DEBUG msg=\"connected again\""} {
				if n := strings.Count(log.String(), line); n == 0 || (n > 1 && !strings.Contains(line, "DEBUG")) {
					t.Errorf("%d times %q in the log:\n%s", n, line, log.String())
				}
			}
		})
	}
}

// TestServerGone is TestServerAway with a server that does not come back. A soft call fails
// when its patience is over, a hard one when its context ends.
func TestServerGone(t *testing.T) {
	for _, k := range []struct {
		name   string
		o      ClientOptions
		proc   int
		sent   bool
		after  time.Duration
		target []error
	}{
		{"soft", ClientOptions{Timeout: 10 * time.Second, Retries: 2}, procEcho, true, 30 * time.Second, []error{ErrNoConnection, errTest}},
		{"no retries", ClientOptions{Timeout: 10 * time.Second, Retries: -1}, procEcho, false, 10 * time.Second, []error{ErrNoConnection, ErrNotSent}},
		{"not repeatable", ClientOptions{Timeout: 10 * time.Second, Resend: true}, procOnce, true, 30 * time.Second, []error{ErrNoConnection, ErrUnknownOutcome}},
		{"few dials", ClientOptions{Timeout: time.Minute, DialTries: 2}, procEcho, false, backoffMin, []error{ErrNoConnection, ErrNotSent}},
		{"hard", ClientOptions{Timeout: time.Second, Hard: true}, procEcho, true, 1000 * time.Second, []error{context.DeadlineExceeded}},
	} {
		t.Run(k.name, func(t *testing.T) {
			inBubble(t, k.o, 0, func(b *bubble) {
				r := b.met()
				ctx, cancel := context.WithTimeout(b.t.Context(), 1000*time.Second)
				defer cancel()
				b.away.Store(true)
				if !k.sent {
					r.hangUp()
					time.Sleep(time.Millisecond)
				}
				b.start = time.Now()
				done := begin(func() error { return callEcho(ctx, b.c, k.proc, "x") })
				if k.sent {
					r.call()
					r.hangUp()
				}
				if err := <-done; !is(k.target...)(err) || errors.Is(err, ErrNotSent) != !k.sent {
					t.Errorf("error %v", err)
				}
				b.passed(k.after)
			})
		})
	}
}

// TestHardTimeouts: a hard call is sent again and again, and waits longer each time, up to
// the bound.
func TestHardTimeouts(t *testing.T) {
	inBubble(t, ClientOptions{Timeout: 100 * time.Second, Hard: true}, 0, func(b *bubble) {
		done := begin(func() error { return callEcho(b.t.Context(), b.c, procEcho, "x") })
		until := time.Duration(0)
		for try := range 9 {
			b.accept().call()
			until += min(time.Duration(try+1)*100*time.Second, maxTimeout)
			time.Sleep(until - time.Since(b.start) - time.Second)
			if n := b.c.Stats().Timeouts; n != uint64(try) {
				t.Errorf("%d time-outs a second before %v", n, until)
			}
		}
		b.accept().answer()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestResend: with Resend, a call that is not repeatable is sent again with its number, and
// its reply says so.
func TestResend(t *testing.T) {
	inBubble(t, ClientOptions{Resend: true}, 0, func(b *bubble) {
		for _, want := range []bool{true, false} {
			var reply Reply
			done := begin(func() (err error) {
				reply, err = b.c.Call(b.t.Context(), proc(procOnce), Auth{}, &opaque{b: []byte("x")}, &opaque{})
				reply.Release()
				return err
			})
			r := b.accept()
			first, _, _ := r.call()
			r.hangUp()
			if r = b.accept(); want {
				if again := r.answer(); again != first {
					t.Errorf("number %d, then %d", first, again)
				}
			} else {
				r.call()
				time.Sleep(time.Second)
				if err := b.c.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := <-done; (err == nil) != want || reply.Resent != want || errors.Is(err, ErrUnknownOutcome) == want {
				t.Errorf("%+v, error %v", reply, err)
			}
			if want {
				r.hangUp()
				time.Sleep(time.Millisecond)
			}
		}
	})
}

// TestResentRefusal: a refusal of a call that was sent before says so, since the
// server that refuses may not be the one that was asked first.
func TestResentRefusal(t *testing.T) {
	inBubble(t, ClientOptions{Resend: true, Retries: math.MaxInt}, 0, func(b *bubble) {
		var reply Reply
		done := begin(func() (err error) {
			reply, err = b.c.Call(b.t.Context(), proc(procOnce), Auth{}, &opaque{b: []byte("x")}, &opaque{})
			return err
		})
		r := b.accept()
		r.call()
		r.hangUp()
		r = b.accept()
		xid, _, _ := r.call()
		r.send(record(words(xid, msgReply, 0, 0, 0, uint32(ProgUnavail))))
		err := <-done
		var refused *AcceptError
		if !errors.As(err, &refused) || refused.Stat != ProgUnavail || !reply.Resent {
			t.Errorf("%+v, error %v", reply, err)
		}
		reply.Release()
		r.hangUp()
		time.Sleep(time.Millisecond)
	})
}

// TestTook: the time of a reply is that of the try which was answered, and the
// counters of the procedure have it all.
func TestTook(t *testing.T) {
	inBubble(t, ClientOptions{Timeout: 10 * time.Second}, 1, func(b *bubble) {
		var reply Reply
		done := begin(func() (err error) {
			reply, err = b.c.Call(b.t.Context(), proc(procEcho), Auth{}, &opaque{b: []byte("four")}, &opaque{})
			reply.Release()
			return err
		})
		b.accept().call()
		r := b.accept()
		time.Sleep(3 * time.Second)
		r.answer()
		if err := <-done; err != nil || !reply.Resent || reply.Took.Round(time.Second) != 3*time.Second {
			t.Errorf("%+v, error %v", reply, err)
		}
		if r, err := b.c.Call(b.t.Context(), proc(procOnce), Auth{}, panics{}, xdr.Void{}); !errors.Is(err, ErrNotSent) {
			t.Errorf("%+v, error %v", r, err)
		}
		procs := b.c.Procs()
		if len(procs) != 2 || procs[0].Proc.Number != procEcho || procs[1].Proc.Number != procOnce {
			t.Fatalf("%+v", procs)
		}
		p := procs[0]
		const size = 4 + 40 + 8 // of the record: its mark, its head, its argument
		if p.Calls != 1 || p.Errors != 0 || p.Retransmits != 1 || p.Timeouts != 1 || p.BytesOut != 2*size || p.BytesIn != 4+24+8 {
			t.Errorf("%+v", p)
		}
		if q := p.Queued.Duration(1); p.Queued.Count != 1 || q < backoffMin || q > 2*backoffMin {
			t.Errorf("queued for %v", q)
		}
		if p.Latency.Count != 1 || time.Duration(p.Latency.Max) != reply.Took {
			t.Errorf("latency %v, reply %v", time.Duration(p.Latency.Max), reply.Took)
		}
		if p := procs[1]; p.Calls != 1 || p.Errors != 1 || p.BytesOut != 0 || p.Latency.Count != 0 {
			t.Errorf("%+v", p)
		}
	})
}

// TestUselessReplies has a server whose first reply is lost, cut or has another number, while
// its connection stays open. The call times out, is sent again with its number on a new
// connection, and has the right result.
func TestUselessReplies(t *testing.T) {
	data := bytes.Repeat([]byte{0x31}, 10000)
	good := func(xid uint32) []byte { return record(accepted(xid, join(words(0, 0, 10000), data, words(1)))) }
	bad := join(words(0, 0, 10000), bytes.Repeat([]byte{0xdd}, 10000), words(1))
	for name, first := range map[string]func(xid uint32) []byte{
		"lost":              func(uint32) []byte { return nil },
		"cut in its mark":   func(xid uint32) []byte { return record(accepted(xid, bad))[:3] },
		"cut in its head":   func(xid uint32) []byte { return record(accepted(xid, bad))[:25] },
		"cut in its bulk":   func(xid uint32) []byte { return record(accepted(xid, bad))[:5000] },
		"cut in its tail":   func(xid uint32) []byte { b := record(accepted(xid, bad)); return b[:len(b)-1] },
		"another's":         func(xid uint32) []byte { return record(accepted(xid+1, bad)) },
		"one never made":    func(xid uint32) []byte { return record(accepted(xid+5000, bad)) },
		"too long a record": func(xid uint32) []byte { return join(words(lastFragment|20000), record(accepted(xid, bad))[4:]) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, ClientOptions{Timeout: time.Second, Retries: 5}, 0, func(b *bubble) {
				buf := make([]byte, len(data))
				done := begin(func() error {
					r, err := b.c.Call(b.t.Context(), proc(procRead), Auth{}, &readArgs{}, &readRes{Data: buf})
					r.Release()
					return err
				})
				r := b.accept()
				xid, _, _ := r.call()
				_, _ = r.nc.Write(first(xid)) // the client may have closed before it had all
				r = b.accept()
				if again, _, _ := r.call(); again != xid {
					b.t.Errorf("number %d, then %d", xid, again)
				}
				r.send(good(xid))
				if err := await(b.t, done); err != nil || !bytes.Equal(buf, data) {
					b.t.Errorf("error %v, data %x...", err, buf[:8])
				}
			})
		})
	}
}
