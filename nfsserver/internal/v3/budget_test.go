package v3

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/nfsserver/internal/peer"
	"github.com/nfsbox/nfsbox/vfs"
)

// idle checks that a budget has everything back.
func (b *budget) idle(t *testing.T, limit int64) {
	t.Helper()
	if b.free != limit || len(b.turn) != 0 || len(b.readers) != 0 || len(b.clients) != 0 || b.short {
		t.Errorf("%d of %d are free, %d wait, %d connections and %d clients are known", b.free, limit, len(b.turn), len(b.readers), len(b.clients))
	}
}

// from is a connection of a client.
func from(share string) *peer.Conn { return &peer.Conn{Share: share} }

// lent is what one call has.
type lent struct {
	by  *reader
	err error
}

// takes has conn take n bytes in a goroutine of its own.
func takes(ctx context.Context, b *budget, conn *peer.Conn, n int64) chan lent {
	c := make(chan lent, 1)
	go func() {
		by, err := b.take(ctx, conn, n)
		c <- lent{by, err}
	}()
	synctest.Wait()
	return c
}

// TestBudgetTurns has clients take turns, and a large wish is not passed over for
// ever by small ones.
func TestBudgetTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 90
		b := newBudget(limit)
		b.perConn, b.patience = limit, time.Hour
		var have []lent
		for i := range 8 { // each has 10: 10 are left
			have = append(have, <-takes(t.Context(), &b, from(fmt.Sprint(i)), 10))
		}
		large := takes(t.Context(), &b, from("large"), 20)
		small := takes(t.Context(), &b, from("small"), 5)
		if len(large) != 0 || len(small) != 0 {
			t.Fatal("somebody was served before their turn")
		}
		b.put(have[0].by, 10)
		l := <-large
		if len(small) != 0 {
			t.Error("the small one has passed the large one")
		}
		b.put(have[1].by, 10)
		s := <-small
		b.put(l.by, 20)
		b.put(s.by, 5)
		for _, h := range have[2:] {
			b.put(h.by, 10)
		}
		b.idle(t, limit)
	})
}

// TestBudgetShares: connections that take nothing, as many as one client likes,
// leave three quarters to the others, and clients that do leave a part to the next.
func TestBudgetShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 1000
		b := newBudget(limit)
		ctx, cancel := context.WithCancel(t.Context())
		var calls []chan lent
		for range 20 {
			conn := from("greedy")
			for range 20 {
				calls = append(calls, takes(ctx, &b, conn, 10))
			}
		}
		if got := b.clients["greedy"].held; got > limit/4 {
			t.Errorf("one client has %d of %d", got, limit)
		}
		for r := range b.readers {
			if b.readers[r].held > limit/connShare {
				t.Errorf("one connection has %d of %d", b.readers[r].held, limit)
			}
		}
		for i := range 8 {
			conn := from(fmt.Sprint("greedy", i))
			for range 50 {
				calls = append(calls, takes(ctx, &b, conn, 10))
			}
		}
		l := <-takes(t.Context(), &b, from("honest"), 10)
		if l.err != nil {
			t.Fatal(l.err)
		}
		b.put(l.by, 10)
		cancel()
		for _, c := range calls {
			if l := <-c; l.err == nil {
				b.put(l.by, 10)
			}
		}
		b.idle(t, limit)
	})
}

// TestBudgetOwnSocket waits for the client's own socket as long as it takes, and for
// what others have until its patience ends.
func TestBudgetOwnSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(80)
		mine, other := from("mine"), from("other")
		first := <-takes(t.Context(), &b, mine, 10) // an eighth: all that one connection may have
		own := takes(t.Context(), &b, mine, 10)
		time.Sleep(100 * b.patience)
		synctest.Wait()
		if len(own) != 0 {
			t.Fatal("a connection was lent more than it may have at once, or gave up")
		}
		all := <-takes(t.Context(), &b, other, 70)
		start := time.Now()
		if l := <-takes(t.Context(), &b, from("late"), 1); !errors.Is(l.err, vfs.ErrBusy) || time.Since(start) != b.patience {
			t.Errorf("%v after %v", l.err, time.Since(start))
		}
		b.put(first.by, 10)
		second := <-own
		b.put(second.by, 10)
		b.put(all.by, 70)
		b.idle(t, 80)
	})
}

// TestBudgetGivesUp lets those behind pass when one gives up.
func TestBudgetGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(10)
		held := <-takes(t.Context(), &b, from("a"), 8)
		start := time.Now()
		large := takes(t.Context(), &b, from("b"), 5)
		time.Sleep(maxWait / 2)
		small := takes(t.Context(), &b, from("c"), 2)
		if l := <-large; !errors.Is(l.err, vfs.ErrBusy) || time.Since(start) != maxWait {
			t.Errorf("the large one: %v after %v", l.err, time.Since(start))
		}
		l := <-small
		if l.err != nil || time.Since(start) != maxWait {
			t.Errorf("the small one: %v after %v", l.err, time.Since(start))
		}
		b.put(l.by, 2)
		b.put(held.by, 8)
		b.idle(t, 10)
	})
}

func TestBudgetCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(10)
		held := <-takes(t.Context(), &b, from("a"), 10)
		ctx, cancel := context.WithCancel(t.Context())
		waits := takes(ctx, &b, from("b"), 1)
		cancel()
		if l := <-waits; !errors.Is(l.err, context.Canceled) {
			t.Error(l.err)
		}
		b.put(held.by, 10)
		b.idle(t, 10)
	})
}

// TestBudgetAllocs: a call that need not wait allocates nothing.
func TestBudgetAllocs(t *testing.T) {
	b := newBudget(1 << 20)
	conn := from("a")
	if n := testing.AllocsPerRun(100, func() {
		r, err := b.take(t.Context(), conn, 1<<10)
		if err != nil {
			t.Fatal(err)
		}
		b.put(r, 1<<10)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
