package v3

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestBudgetWaits serves in the order of coming, and a large wish is not passed
// over for ever by small ones.
func TestBudgetWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{patience: time.Minute, free: 10}
		take := func(n int64) {
			if err := b.take(t.Context(), n); err != nil {
				t.Error(err)
			}
		}
		take(6)
		served := make(chan int64, 3)
		for _, n := range []int64{8, 1, 2} {
			go func() {
				take(n)
				served <- n
			}()
			synctest.Wait()
		}
		if len(served) != 0 {
			t.Fatal("somebody was served before their turn")
		}
		b.put(6) // for the 8 and the 1, and the 2 still waits
		synctest.Wait()
		if len(served) != 2 || <-served+<-served != 9 || b.free != 1 {
			t.Fatalf("%d are free", b.free)
		}
		b.put(8)
		if n := <-served; n != 2 {
			t.Errorf("%d was served", n)
		}
		b.put(3)
		if b.free != 10 || len(b.queue) != 0 {
			t.Errorf("%d are free, %d wait", b.free, len(b.queue))
		}
	})
}

// TestBudgetGivesUp answers ErrBusy after a while, and lets those behind pass.
func TestBudgetGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{patience: maxWait, free: 1}
		large, small := make(chan error, 1), make(chan error, 1)
		go func() { large <- b.take(t.Context(), 2) }()
		synctest.Wait()
		time.Sleep(maxWait / 2)
		go func() { small <- b.take(t.Context(), 1) }()
		synctest.Wait()
		start := time.Now()
		if err := <-large; !errors.Is(err, vfs.ErrBusy) {
			t.Errorf("the large one: %v", err)
		}
		if d := time.Since(start); d != maxWait/2 {
			t.Errorf("it gave up after another %v", d)
		}
		if err := <-small; err != nil {
			t.Errorf("the small one: %v", err)
		}
		b.put(1)
		if b.free != 1 || len(b.queue) != 0 {
			t.Errorf("%d are free, %d wait", b.free, len(b.queue))
		}
	})
}

func TestBudgetCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{patience: maxWait}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.take(ctx, 1) }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || len(b.queue) != 0 {
			t.Errorf("%v, %d wait", err, len(b.queue))
		}
	})
}
