package queuetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

// odd are names that jobs may have, and that a broker could mistake for each other.
var odd = []string{"a", "A", "a.b", "a-b", "a_b", "a..b.", "0", "x-.-", strings.Repeat("n", 64), strings.Repeat("n", 63) + "."}

func badJobs(e *env) {
	b, good := e.connect(), job("copy", e.Name())
	for _, bad := range []queue.Job{
		{},
		{Name: "", Run: good.Run},
		{Name: ".hidden", Run: good.Run},
		{Name: "a*", Run: good.Run},
		{Name: "a.>", Run: good.Run},
		{Name: "a b", Run: good.Run},
		{Name: "a/b", Run: good.Run},
		{Name: "ä", Run: good.Run},
		{Name: strings.Repeat("n", 65), Run: good.Run},
		{Name: "a", Run: ""},
		{Name: "a", Run: strings.ToUpper(good.Run)},
		{Name: "a", Run: good.Run[1:] + ">"},
		{Name: "a", Run: good.Run + "0"},
	} {
		if _, err := b.Open(e.ctx, bad); err == nil {
			e.Errorf("%+v is opened", bad)
		}
		if _, err := b.Join(e.ctx, bad); err == nil || errors.Is(err, queue.ErrLost) {
			e.Errorf("%+v is joined: %v", bad, err)
		}
	}
	e.wantJobs(b)
}

// wantJobs wants these jobs to be listed, and no others.
func (e *env) wantJobs(b queue.Broker, want ...queue.Job) {
	e.Helper()
	got, err := b.Jobs(e.ctx)
	if err != nil {
		e.Fatal(err)
	}
	order := func(x, y queue.Job) int { return cmp.Compare(x.Run, y.Run) }
	slices.SortFunc(got, order)
	want = slices.SortedFunc(slices.Values(want), order)
	if !slices.EqualFunc(got, want, func(x, y queue.Job) bool {
		return x.Name == y.Name && x.Run == y.Run && bytes.Equal(x.Spec, y.Spec)
	}) {
		e.Errorf("jobs are %.30q, want %.30q", got, want)
	}
}

func jobs(e *env) {
	b := e.connect()
	e.wantJobs(b)
	var want []queue.Job
	for _, name := range odd {
		j := job(name, e.Name())
		e.open(j)
		want = append(want, j)
	}
	long := job("long", e.Name())
	long.Spec = bytes.Repeat([]byte("\x00\xff"), queue.MaxSpec/2)
	e.open(long)
	e.wantJobs(b, append(want, long)...)
	if err := b.Remove(e.ctx, long); err != nil {
		e.Fatal(err)
	}
	e.wantJobs(b, want...)
}

func jobsBound(e *env) {
	b := e.connect()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := i; n < queue.MaxJobs+5; n += 8 {
				if _, err := b.Open(e.ctx, job(fmt.Sprint("job", n), e.Name())); err != nil {
					e.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got, err := b.Jobs(e.ctx); err != nil || len(got) != queue.MaxJobs {
		e.Errorf("%d jobs, %v", len(got), err)
	}
}

// openAgain wants a second Open to find what is there.
func openAgain(e *env) {
	j, d, t := e.pair()
	e.deal(d, 1, "one")
	again := e.open(j)
	e.deal(again, 2, "two")
	e.deal(d, 3, "three")
	for i, text := range []string{"one", "two", "three"} {
		e.settle(t, e.take(t, uint64(i+1), text, 1), true)
	}
	e.wantJobs(e.connect(), j)
}

// announce wants a description that a stranger has put in place of the job's to be gone, and the items to stay.
func announce(e *env) {
	j, d, t := e.pair()
	e.deal(d, 1, "one")
	forged := j
	forged.Spec = []byte("forged")
	e.ForgeJob(e.T, forged)
	e.wantJobs(e.connect(), forged)
	for range 2 {
		if err := d.Announce(e.ctx); err != nil {
			e.Fatal(err)
		}
		e.wantJobs(e.connect(), j)
	}
	e.settle(t, e.take(t, 1, "one", 1), true)
}

// laterRun wants a run to remove the earlier ones of its job, and to leave other jobs alone.
func laterRun(e *env) {
	var kept []queue.Job
	for _, name := range odd {
		j := job(name, "kept")
		e.deal(e.open(j), 1, name)
		kept = append(kept, j)
	}
	for _, name := range odd {
		earlier, later := job(name, "kept"), job(name, "later")
		d := e.open(later)
		if _, err := e.connect().Join(e.ctx, earlier); !errors.Is(err, queue.ErrLost) {
			e.Errorf("%s: the earlier run: %v", name, err)
		}
		t := e.join(later)
		e.deal(d, 2, "later")
		e.settle(t, e.take(t, 2, "later", 1), true)
		kept = append(slices.DeleteFunc(kept, func(j queue.Job) bool { return j.Name == name }), later)
		e.wantJobs(e.connect(), kept...)
	}
}

// wantLost wants all ends of a run's queue to say that it is gone.
func (e *env) wantLost(j queue.Job, d queue.Dealer, t queue.Taker, leases ...*queue.Lease) {
	e.Helper()
	want := func(what string, err error) {
		e.Helper()
		if !errors.Is(err, queue.ErrLost) {
			e.Errorf("%s: %v", what, err)
		}
	}
	want("Deal", d.Deal(e.ctx, queue.Item{ID: 99}))
	want("Announce", d.Announce(e.ctx))
	_, err := t.Take(e.ctx)
	want("Take", err)
	_, err = e.connect().Join(e.ctx, j)
	want("Join", err)
	for _, l := range leases {
		if err := t.Extend(e.ctx, l); !errors.Is(err, queue.ErrExpired) {
			want("Extend", err)
		}
		want("Settle", t.Settle(e.ctx, l, true))
	}
}

func removed(e *env) {
	j, d, t := e.pair()
	other := job("other", e.Name())
	od, ot := e.open(other), e.join(other)
	e.deal(d, 1, "one")
	e.deal(d, 2, "two")
	l := e.take(t, 1, "one", 1)
	b := e.connect()
	for range 2 { // the second time there is nothing
		if err := b.Remove(e.ctx, j); err != nil {
			e.Error(err)
		}
		e.wantLost(j, d, t, l)
	}
	e.wantJobs(b, other)
	e.deal(od, 1, "other")
	e.settle(ot, e.take(ot, 1, "other", 1), true)
}

func removedWhileTaking(e *env) {
	j, d, t := e.pair()
	e.deal(d, 1, "one")
	e.settle(t, e.take(t, 1, "one", 1), true)
	ends := make(chan error, 3)
	for range cap(ends) {
		go func() {
			_, err := t.Take(e.ctx)
			ends <- err
		}()
	}
	if err := e.connect().Remove(e.ctx, j); err != nil {
		e.Fatal(err)
	}
	for range cap(ends) {
		if err := <-ends; !errors.Is(err, queue.ErrLost) {
			e.Errorf("Take: %v", err)
		}
	}
}

// forgotten wants a broker that has lost all to say so, and to be good for a new beginning.
func forgotten(e *env) {
	j, d, t := e.pair()
	e.answer(d, echo)
	e.asked(t, "there?")
	e.deal(d, 1, "one")
	e.deal(d, 2, "two")
	l := e.take(t, 1, "one", 1)
	waits := e.join(job("copy", e.Name()))
	e.settle(waits, e.take(waits, 2, "two", 1), true)
	end := make(chan error, 1)
	go func() {
		_, err := waits.Take(e.ctx)
		end <- err
	}()
	e.Forget(e.T)
	if err := <-end; !errors.Is(err, queue.ErrLost) {
		e.Errorf("a worker that waits for an item: %v", err)
	}
	e.wantLost(j, d, t, l)
	e.wantJobs(e.connect())
	if got := e.asked(t, "still?"); got != "re: still?" {
		e.Errorf("the answer is %q", got)
	}
	again, anew := e.open(j), e.join(j)
	e.wantJobs(e.connect(), j)
	e.deal(again, 1, "anew")
	e.settle(anew, e.take(anew, 1, "anew", 1), true)
	e.deal(d, 2, "as before")
	e.settle(t, e.take(t, 2, "as before", 1), true)
}

// all calls every method with ctx, and wants them to end with an error for which ok is true.
func (e *env) all(ctx context.Context, b queue.Broker, j queue.Job, d queue.Dealer, t queue.Taker, l *queue.Lease, ok func(error) bool) {
	e.Helper()
	var wg sync.WaitGroup
	for what, call := range map[string]func() error{
		"Deal":     func() error { return d.Deal(ctx, queue.Item{ID: 5}) },
		"Announce": func() error { return d.Announce(ctx) },
		"Answer":   func() error { return d.Answer(ctx, echo) },
		"Take":     func() error { _, err := t.Take(ctx); return err },
		"Extend":   func() error { return t.Extend(ctx, l) },
		"Settle":   func() error { return t.Settle(ctx, l, false) },
		"Ask":      func() error { _, err := t.Ask(ctx, nil); return err },
		"Open":     func() error { _, err := b.Open(ctx, j); return err },
		"Join":     func() error { _, err := b.Join(ctx, j); return err },
		"Jobs":     func() error { _, err := b.Jobs(ctx); return err },
		"Remove":   func() error { return b.Remove(ctx, j) },
	} {
		wg.Go(func() {
			if err := call(); !ok(err) {
				e.Errorf("%s: %v", what, err)
			}
		})
	}
	wg.Wait()
}
