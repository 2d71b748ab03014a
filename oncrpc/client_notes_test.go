package oncrpc

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"
)

// heardOf collects what ClientOptions.Silent is told.
type heardOf struct {
	mu  sync.Mutex
	all []Silence
}

func (h *heardOf) silent(s Silence) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, s)
}

func (h *heardOf) is(t *testing.T, want ...Silence) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.all) != len(want) {
		t.Fatalf("%d silences are told, want %d: %+v", len(h.all), len(want), h.all)
	}
	for i, got := range h.all {
		w := want[i]
		if got.Over != w.Over || !near(got.Since, w.Since) || !near(got.Until, w.Until) {
			t.Errorf("silence %d is %+v, want %+v", i, got, w)
		}
	}
}

// echo answers a call of ECHO.
func (r *rawConn) echo(xid uint32, text string) {
	r.t.Helper()
	r.send(record(accepted(xid, str(text))))
}

// near reports whether a and b are the same, up to some ticks.
func near(a, b time.Time) bool { return a.IsZero() == b.IsZero() && a.Sub(b).Abs() <= 8*tickEvery }

// TestSilence has a server that sends nothing for a while. Silent is told once after
// SilentAfter, with the time at which the first call gives up, and once more when the
// server sends. It is not told of calls that are answered in time.
func TestSilence(t *testing.T) {
	var h heardOf
	inBubble(t, ClientOptions{Timeout: time.Minute, Silent: h.silent}, 0, func(b *bubble) {
		call := func() chan error {
			return begin(func() error { return callEcho(b.t.Context(), b.c, procEcho, "x") })
		}
		answered := call()
		r := b.accept()
		xid, _, _ := r.call()
		time.Sleep(SilentAfter - time.Second)
		r.echo(xid, "x")
		if err := <-answered; err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // nobody calls
		h.is(t)

		since := time.Now()
		first := call()
		x1, _, _ := r.call()
		time.Sleep(SilentAfter - time.Second)
		second := call()
		x2, _, _ := r.call()
		h.is(t)
		time.Sleep(2 * time.Second)
		silent := Silence{Since: since, Until: since.Add(3 * time.Minute)}
		h.is(t, silent)
		if more := b.c.Quiet() - SilentAfter - time.Second; more.Abs() > 8*tickEvery {
			t.Errorf("quiet for %v more than that", more)
		}
		time.Sleep(30 * time.Second)
		h.is(t, silent)
		r.echo(x1, "x")
		r.echo(x2, "x")
		if err := <-first; err != nil {
			t.Fatal(err)
		}
		if err := <-second; err != nil {
			t.Fatal(err)
		}
		last := call()
		x3, _, _ := r.call()
		time.Sleep(time.Second) // the clock looks
		r.echo(x3, "x")
		if err := <-last; err != nil {
			t.Fatal(err)
		}
		h.is(t, silent, Silence{Since: since, Over: true})
		if d := b.c.Quiet(); d != 0 {
			t.Errorf("quiet for %v, and nothing is wanted", d)
		}
	})
}

// TestSilenceOfQuestions: a question, which CallOnce asks and gives up soon, is nothing that a
// program waits for. Alone it makes no silence, and beside a call it does not say when that
// gives up.
func TestSilenceOfQuestions(t *testing.T) {
	var h heardOf
	inBubble(t, ClientOptions{Timeout: time.Minute, Silent: h.silent}, 0, func(b *bubble) {
		ask := func() chan error {
			ctx, cancel := context.WithTimeout(b.t.Context(), SilentAfter+time.Second)
			return begin(func() error {
				defer cancel()
				r, err := b.c.CallOnce(ctx, proc(procEcho), Auth{}, &opaque{b: []byte("?")}, new(opaque))
				r.Release()
				return err
			})
		}
		asked := ask()
		r := b.accept()
		r.call()
		if err := <-asked; !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		h.is(t)

		since := time.Now()
		done := begin(func() error { return callEcho(b.t.Context(), b.c, procEcho, "x") })
		asked = ask()
		x1, _, _ := r.call()
		x2, _, _ := r.call()
		time.Sleep(SilentAfter + 500*time.Millisecond)
		h.is(t, Silence{Since: since, Until: since.Add(3 * time.Minute)})
		r.echo(x1, "x")
		r.echo(x2, "x")
		if err := <-asked; err != nil || <-done != nil {
			t.Error("the call was not answered")
		}
	})
}

// TestSilenceGoesOn: calls still wait when the first one has given up. Silent is told until
// when they do. A call that is made after a rest is not told of at once.
func TestSilenceGoesOn(t *testing.T) {
	var h heardOf
	inBubble(t, ClientOptions{Timeout: time.Minute, Silent: h.silent}, 0, func(b *bubble) {
		b.c.o.Dial = func(ctx context.Context) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		since := time.Now()
		ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second)
		defer cancel()
		call := func(ctx context.Context) chan error {
			return begin(func() error { return callEcho(ctx, b.c, procEcho, "x") })
		}
		first, second := call(ctx), call(b.t.Context())
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		all := []Silence{{Since: since, Until: since.Add(20 * time.Second)}}
		h.is(t, all...)
		time.Sleep(SilentAfter + time.Second)
		all = append(all, Silence{Since: since, Until: since.Add(3 * time.Minute)})
		h.is(t, all...)
		if err := <-second; !is(ErrNoConnection)(err) {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		h.is(t, all...)
		later := time.Now()
		third := call(b.t.Context())
		time.Sleep(SilentAfter - time.Second)
		h.is(t, all...)
		time.Sleep(2 * time.Second)
		h.is(t, append(all, Silence{Since: since, Until: later.Add(3 * time.Minute)})...)
		if err := <-third; !is(ErrNoConnection)(err) {
			t.Error(err)
		}
	})
}

// TestSilenceEndsWithClose closes a client as soon as its call was answered after a silence.
// Silent is still told that the silence is over.
func TestSilenceEndsWithClose(t *testing.T) {
	var h heardOf
	since := time.Time{}
	inBubble(t, ClientOptions{Timeout: time.Minute, Silent: h.silent}, 0, func(b *bubble) {
		since = time.Now()
		done := begin(func() error { return callEcho(b.t.Context(), b.c, procEcho, "x") })
		r := b.accept()
		xid, _, _ := r.call()
		time.Sleep(SilentAfter + time.Second)
		r.echo(xid, "x")
		if err := errors.Join(<-done, b.c.Close()); err != nil {
			t.Fatal(err)
		}
	})
	h.is(t, Silence{Since: since, Until: since.Add(3 * time.Minute)}, Silence{Since: since, Over: true})
}

// TestSilenceOfOneCall: a server that never answers one call, and others, is not silent.
func TestSilenceOfOneCall(t *testing.T) {
	var h heardOf
	inBubble(t, ClientOptions{Timeout: time.Minute, Silent: h.silent}, 0, func(b *bubble) {
		ctx, cancel := context.WithCancel(b.t.Context())
		stuck := begin(func() error { return callEcho(ctx, b.c, procEcho, "stuck") })
		r := b.accept()
		r.call()
		for range 10 {
			other := begin(func() error { return callEcho(b.t.Context(), b.c, procEcho, "x") })
			xid, _, _ := r.call()
			time.Sleep(SilentAfter / 2)
			r.echo(xid, "x")
			if err := <-other; err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		if err := <-stuck; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		h.is(t)
	})
}

// TestSilenceOfHardCalls: hard calls give up only at their context's deadline. A server that
// cannot be reached is silent, too.
func TestSilenceOfHardCalls(t *testing.T) {
	for _, bound := range []time.Duration{0, 20 * time.Second} {
		var h heardOf
		inBubble(t, ClientOptions{Timeout: time.Minute, Hard: true, Silent: h.silent}, 0, func(b *bubble) {
			b.c.o.Dial = func(ctx context.Context) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			ctx, cancel := context.WithCancel(b.t.Context())
			want := Silence{Since: time.Now()}
			if bound > 0 {
				ctx, cancel = context.WithTimeout(b.t.Context(), bound)
				want.Until = time.Now().Add(bound)
			}
			done := begin(func() error { return callEcho(ctx, b.c, procEcho, "x") })
			time.Sleep(SilentAfter + time.Second)
			h.is(t, want)
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}
