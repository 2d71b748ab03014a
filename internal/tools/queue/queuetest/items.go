package queuetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

const last = 1 << 60 // an item that is dealt behind others

func deal(e *env) {
	_, d, t := e.pair()
	texts := []string{"one", "", "three \x00 \xff"}
	for i, text := range texts {
		e.deal(d, uint64(i), text)
	}
	var leases []*queue.Lease
	for i, text := range texts {
		leases = append(leases, e.take(t, uint64(i), text, 1))
	}
	for _, l := range leases {
		e.settle(t, l, true)
	}
	e.deal(d, last, "last")
	e.settle(t, e.take(t, last, "last", 1), true)
}

func longest(e *env) {
	_, d, t := e.pair()
	text := strings.Repeat("x", queue.MaxItem)
	e.deal(d, 1<<64-1, text)
	e.settle(t, e.take(t, 1<<64-1, text, 1), true)
}

func tooLong(e *env) {
	j, d, t := e.pair()
	if err := d.Deal(e.ctx, queue.Item{ID: 1, Body: make([]byte, queue.MaxItem+1)}); !errors.Is(err, queue.ErrTooLong) {
		e.Errorf("an item that is too long: %v", err)
	}
	j.Name, j.Spec = "other", make([]byte, queue.MaxSpec+1)
	if _, err := e.connect().Open(e.ctx, j); !errors.Is(err, queue.ErrTooLong) {
		e.Errorf("a spec that is too long: %v", err)
	}
	e.deal(d, last, "last")
	e.settle(t, e.take(t, last, "last", 1), true)
}

// giveBack wants an item to be leased MaxLeases times, and no more.
func giveBack(e *env) {
	_, d, t := e.pair()
	e.deal(d, 7, "seven")
	for attempt := range queue.MaxLeases {
		e.settle(t, e.take(t, 7, "seven", attempt+1), false)
	}
	e.deal(d, last, "last")
	e.settle(t, e.take(t, last, "last", 1), true)
	e.deal(d, 7, "seven, again")
	e.settle(t, e.take(t, 7, "seven, again", 1), true)
}

// leaseEnds wants another worker to have an item after a while, and the first to have no say.
func leaseEnds(e *env) {
	j, d, first := e.pair()
	second := e.join(j)
	e.deal(d, 7, "seven")
	old := e.take(first, 7, "seven", 1)
	now := e.take(second, 7, "seven", 2)
	if err := first.Extend(e.ctx, old); !errors.Is(err, queue.ErrExpired) {
		e.Errorf("a lease that has ended is extended: %v", err)
	}
	e.settle(first, old, false)
	e.deal(d, last, "last")
	e.settle(first, e.take(first, last, "last", 1), true)
	e.settle(second, now, true)
}

// extend wants nobody else to have an item that is extended for twice its lease.
func extend(e *env) {
	j, d, first := e.pair()
	second := e.join(j)
	for try := range 10 {
		e.deal(d, 7, "seven")
		taken := time.Now()
		l := e.take(first, 7, "seven", 1)
		next := make(chan *queue.Lease, 1)
		go func() {
			got, err := second.Take(e.ctx)
			if err != nil {
				e.Error(err)
			}
			next <- got
		}()
		inTime := e.extendFor(first, l, taken)
		e.settle(first, l, true)
		e.deal(d, last, "last")
		got := <-next
		if got == nil || got.ID == last && !inTime {
			return // an error was told, or nothing was seen to be wrong
		}
		e.settle(second, got, true)
		if got.ID == last {
			return
		}
		if inTime {
			e.Fatalf("item %d came to another worker though it was extended", got.ID)
		}
		e.Logf("try %d: the machine was too slow to extend in time", try)
		e.settle(second, e.take(second, last, "last", 1), true)
	}
}

// extendFor extends a lease for two lease times, and reports whether it came in time always.
func (e *env) extendFor(t queue.Taker, l *queue.Lease, since time.Time) (inTime bool) {
	inTime = true
	for range 8 {
		time.Sleep(e.Lease / 4)
		asked := time.Now()
		err := t.Extend(e.ctx, l)
		if time.Since(since) >= e.Lease*3/4 {
			inTime = false
		}
		if err != nil && (inTime || !errors.Is(err, queue.ErrExpired)) {
			e.Error(err)
		}
		since = asked
	}
	return inTime
}

// dealAgain wants an item that is dealt again to be new.
func dealAgain(e *env) {
	_, d, t := e.pair()
	e.deal(d, 7, "seven")
	old := e.take(t, 7, "seven", 1)
	e.deal(d, 7, "seven, again")
	l := e.take(t, 7, "seven, again", 1)
	e.settle(t, old, true)
	e.settle(t, l, false)
	e.settle(t, e.take(t, 7, "seven, again", 2), true)
	e.deal(d, 8, "eight")
	e.deal(d, 8, "eight, again")
	e.settle(t, e.take(t, 8, "eight, again", 1), true)
	e.deal(d, last, "last")
	e.settle(t, e.take(t, last, "last", 1), true)
}

// manyTakers wants each item to be leased to one worker, once, if that is quick.
func manyTakers(e *env) {
	const items, takers = 200, 8
	j, d, _ := e.pair()
	for i := range items {
		e.deal(d, uint64(i), "item")
	}
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	var mu sync.Mutex
	leased := make(map[uint64]time.Time)
	var wg sync.WaitGroup
	for range takers {
		t := e.join(j)
		wg.Go(func() {
			for {
				l, err := t.Take(ctx)
				if err != nil {
					if ctx.Err() == nil {
						e.Error(err)
					}
					return
				}
				mu.Lock()
				if at, ok := leased[l.ID]; ok && time.Since(at) < e.Lease/2 {
					e.Errorf("item %d is leased twice", l.ID)
				}
				leased[l.ID] = time.Now()
				all := len(leased) == items
				mu.Unlock()
				if err := t.Settle(e.ctx, l, true); err != nil {
					e.Error(err)
				}
				if all {
					cancel()
				}
			}
		})
	}
	wg.Wait()
	if len(leased) != items {
		e.Errorf("%d of %d items came", len(leased), items)
	}
}

// full wants Deal to wait for room.
func full(e *env) {
	_, d, t := e.pair()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for id := i; id < queue.MaxDealt; id += 16 {
				if err := d.Deal(e.ctx, queue.Item{ID: uint64(id)}); err != nil {
					e.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	ctx, cancel := context.WithTimeout(e.ctx, e.Lease/4)
	defer cancel()
	if err := d.Deal(ctx, queue.Item{ID: last}); !errors.Is(err, context.DeadlineExceeded) {
		e.Fatalf("an item more than there is room for: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- d.Deal(e.ctx, queue.Item{ID: last}) }()
	l, err := t.Take(e.ctx)
	if err != nil {
		e.Fatal(err)
	}
	e.settle(t, l, true)
	if err := <-done; err != nil {
		e.Errorf("there is room: %v", err)
	}
}

func forged(e *env) {
	j, d, t := e.pair()
	e.Forge(e.T, j, queue.Item{ID: 1, Body: make([]byte, queue.MaxItem+1)})
	e.deal(d, last, "last")
	if l, err := t.Take(e.ctx); !errors.Is(err, queue.ErrTooLong) {
		e.Fatalf("an item that is too long: %+v, %v", l, err)
	}
	e.settle(t, e.take(t, last, "last", 1), true)
	e.deal(d, last+1, "behind it")
	e.settle(t, e.take(t, last+1, "behind it", 1), true)
}

// foreignLease wants a lease of nobody's to be refused.
func foreignLease(e *env) {
	_, _, t := e.pair()
	for _, token := range []any{nil, "a token"} {
		l := &queue.Lease{Attempt: 1, Token: token}
		if err := t.Extend(e.ctx, l); !errors.Is(err, queue.ErrForged) {
			e.Errorf("it is extended: %v", err)
		}
		if err := t.Settle(e.ctx, l, true); !errors.Is(err, queue.ErrForged) {
			e.Errorf("it is settled: %v", err)
		}
	}
}
