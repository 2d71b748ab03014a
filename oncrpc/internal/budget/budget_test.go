package budget

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// connection is a sender. It has a size, so that each has an address of its own.
type connection struct{ _ int }

func (*connection) TooSlow() {}

// idle checks that a budget has everything back.
func (b *Budget) idle(t *testing.T) {
	t.Helper()
	if b.Outstanding() != 0 || len(b.turn) != 0 || len(b.clients) != 0 || b.out != nil {
		t.Errorf("left over: %+v", b)
	}
}

// TestBudget makes many requests of some clients at once. Some give up, and all others get
// what they need. No more is given away than there is, and no client has more than its
// share.
func TestBudget(t *testing.T) {
	const limit, longest, workers, clients = 100, 32, 40, 3
	b := New(limit, longest, time.Now())
	var out, most atomic.Int64
	var per [clients]atomic.Int64
	gone := make(chan struct{})
	close(gone)
	var wg sync.WaitGroup
	for g := range workers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(2, uint64(g)))
			for range 300 {
				d := b.Join(fmt.Sprint(g % clients))
				var a Allowance
				var stop chan struct{}
				if rnd.IntN(4) == 0 {
					stop = gone
				}
				n := 1 + rnd.Int64N(longest)
				if _, ok := d.Take(&a, n, stop); ok {
					if now := per[g%clients].Add(n); now > limit/2 {
						t.Errorf("a client holds %d", now)
					}
					now := out.Add(n)
					for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
					}
					if _, ok := d.Take(&a, n/2, nil); !ok || a.held != n {
						t.Errorf("holds %d of %d", a.held, n)
					}
					out.Add(-n)
					per[g%clients].Add(-n)
				} else if stop == nil {
					t.Error("nothing was given to one that waits")
				}
				a.Put()
				d.Leave()
			}
		})
	}
	wg.Wait()
	if most.Load() > limit {
		t.Errorf("%d bytes were out at once", most.Load())
	}
	b.idle(t)
}

// TestBudgetOrder checks which requests wait for others, and what one leaves that gives up.
func TestBudgetOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(100, 1, time.Now())
		var got []string
		var mu sync.Mutex
		all := make(map[string]*Allowance)
		take := func(name string, n int64, stop chan struct{}) {
			a := &Allowance{}
			all[name] = a
			d := b.Join(name[:1])
			go func() {
				if _, ok := d.Take(a, n, stop); !ok {
					name += " left"
					d.Leave()
				}
				mu.Lock()
				defer mu.Unlock()
				got = append(got, name)
			}()
			synctest.Wait()
		}
		put := func(name string) {
			d := all[name].by
			all[name].Put()
			d.Leave()
		}
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%q were served, want %q", got, want)
			}
			got = nil
		}
		stop := make(chan struct{})
		take("a1", 50, nil)
		take("a2", 10, nil) // waits: a has its share
		take("a3", 1, stop) // waits behind a2
		take("b1", 40, nil) // passes by
		expect("a1", "b1")
		take("c1", 20, nil) // waits: 10 are free
		take("d1", 5, nil)  // waits behind c1
		take("c2", 5, nil)
		expect()
		close(stop)
		expect("a3 left")
		put("b1")
		expect("c1", "d1") // 25 are free, of which c, with 20, may not have 5, nor a 10
		put("d1")
		expect("c2") // c has as many as are free
		put("a1")
		expect("a2")
		take("b2", 45, nil)
		take("b3", 10, nil) // waits: b has its share
		take("e1", 30, nil) // waits: 20 are free
		expect("b2")
		put("c1") // 40 are free
		expect("e1")
		for _, name := range []string{"b2", "a2", "c2", "e1"} {
			put(name)
		}
		expect("b3")
		put("b3")
		b.idle(t)
	})
}

// TestBudgetTurns: a client that begins many requests delays the others by one of them.
func TestBudgetTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(2, 1, time.Now())
		greedy, modest := b.Join("greedy"), b.Join("modest")
		var held [20]Allowance
		done := 0
		for i := range held {
			go func() {
				greedy.Take(&held[i], 1, nil)
				done++
			}()
		}
		synctest.Wait()
		for i := range 5 {
			var a Allowance
			if _, ok := modest.Take(&a, 1, nil); !ok || done != 1 {
				t.Fatalf("turn %d: %d of the others are served", i, done)
			}
			a.Put()
		}
		for range held {
			for i := range held {
				synctest.Wait()
				held[i].Put()
			}
		}
		greedy.Leave()
		modest.Leave()
		b.idle(t)
	})
}

// TestBudgetSlowest: a request that waits ends the slowest sender, of the client that holds
// most, unless its own client has its share.
func TestBudgetSlowest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(150, 1, time.Now())
		type sender struct {
			d *Client
			a *Allowance
		}
		begin := func(name string, n int64, came int64) sender {
			s := sender{b.Join(name), &Allowance{From: &connection{}}}
			if _, ok := s.d.Take(s.a, n, nil); !ok {
				t.Fatal("no room")
			}
			s.a.Got.Store(came)
			return s
		}
		slow := begin("a", 30, 10)
		slower := begin("a", 20, 5)
		done := begin("b", 25, 0)
		done.a.Whole.Store(true)
		fast := begin("b", 25, 100*crowdedRate)
		small := begin("d", 1, 0)
		c, want := b.Join("c"), &Allowance{want: 10}
		c.queue = append(c.queue, want)
		if got := b.slowest(c, want); got != nil {
			t.Error("one that has just begun has to go")
		}
		time.Sleep(slowAfter)
		if got := b.slowest(c, want); got != slower.a.From {
			t.Errorf("%p has to go, want %p", got, slower.a.From)
		}
		own := &Allowance{want: 10}
		done.d.queue = append(done.d.queue, own)
		if got := b.slowest(done.d, own); got != nil {
			t.Error("one of another client has to go, or one that is whole, or fast enough")
		}
		slow.d.queue = append(slow.d.queue, own)
		if got := b.slowest(slow.d, own); got != nil {
			t.Error("one has to go for another of its client, which has its share")
		}
		c.queue, done.d.queue, slow.d.queue = nil, nil, nil
		for _, s := range []sender{slow, slower, done, fast, small} {
			s.a.Put()
			s.d.Leave()
		}
		c.Leave()
		b.idle(t)
	})
}

// TestBudgetManyGreedy: however much greedy clients take in turn, a later client finds as
// much as the greediest of them has.
func TestBudgetManyGreedy(t *testing.T) {
	gone := make(chan struct{})
	close(gone)
	for greedy := 1; greedy <= 9; greedy++ {
		b := New(1000, 1, time.Now())
		all := make(map[*Allowance]*Client)
		for taken := true; taken; {
			taken = false
			for i := range greedy {
				d, a := b.Join(fmt.Sprint(i)), &Allowance{}
				if _, ok := d.Take(a, 1, gone); !ok {
					d.Leave()
					continue
				}
				all[a], taken = d, true
			}
		}
		if b.free < 1000/int64(greedy+1) {
			t.Errorf("%d clients have left %d of 1000", greedy, b.free)
		}
		for a, d := range all {
			a.Put()
			d.Leave()
		}
		b.idle(t)
	}
}

// TestBudgetBehindShare: a client that has its share and wants more than is free does not
// keep others from what is free.
func TestBudgetBehindShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(100, 32, time.Now())
		var wg sync.WaitGroup
		given := make(map[string]*Allowance)
		take := func(who string, n int64) {
			d, a := b.Join(who), &Allowance{}
			given[who+fmt.Sprint(n)] = a
			wg.Go(func() {
				if _, ok := d.Take(a, n, nil); !ok {
					t.Errorf("%s was given nothing", who)
				}
			})
			synctest.Wait()
		}
		take("greedy", 30)
		take("greedy", 25) // waits: it is more than half
		take("other", 32)
		take("third", 20)
		take("small", 8) // 18 are free
		if a := given["small8"]; a.held != 8 {
			t.Error("the small one waits for what is not the greedy one's to have")
		}
		for _, who := range []string{"greedy30", "other32", "third20", "small8"} {
			given[who].Put()
		}
		wg.Wait()
		for _, a := range given {
			a.Put()
			a.by.Leave()
		}
		b.idle(t)
	})
}
