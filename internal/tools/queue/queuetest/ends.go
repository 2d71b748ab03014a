package queuetest

import (
	"context"
	"errors"

	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

// outage wants what is asked for meanwhile to be done when the broker is back.
func outage(e *env) {
	j, d, t := e.pair()
	e.deal(d, 1, "one")
	one := e.take(t, 1, "one", 1)
	waits := e.join(j)
	taken := make(chan *queue.Lease, 1)
	go func() {
		l, err := waits.Take(e.ctx)
		if err != nil {
			e.Error(err)
		}
		taken <- l
	}()
	back := e.Outage(e.T)
	done := make(chan error, 2)
	go func() { done <- t.Settle(e.ctx, one, true) }()
	go func() { done <- d.Deal(e.ctx, queue.Item{ID: 2, Body: []byte("two")}) }()
	select {
	case err := <-done:
		e.Errorf("without a broker: %v", err)
	case l := <-taken:
		e.Fatalf("without a broker: %+v", l)
	case <-e.moment():
	}
	back()
	for range cap(done) {
		if err := <-done; err != nil {
			e.Error(err)
		}
	}
	two := <-taken
	if two == nil || two.ID != 2 && two.ID != 1 {
		e.Fatalf("item 2 comes as %+v", two)
	}
	e.settle(waits, two, true)
}

// moment ends when a quarter of a lease has gone by.
func (e *env) moment() <-chan struct{} {
	ctx, cancel := context.WithTimeout(e.ctx, e.Lease/4)
	e.Cleanup(cancel)
	return ctx.Done()
}

func outageCancelled(e *env) {
	j, d, t := e.pair()
	b := e.connect()
	e.deal(d, 1, "one")
	l := e.take(t, 1, "one", 1)
	defer e.Outage(e.T)()
	ctx, cancel := context.WithTimeout(e.ctx, e.Lease/4)
	defer cancel()
	e.all(ctx, b, j, d, t, l, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) })
}

// outageAsk wants a question whose answer was lost to be put again.
func outageAsk(e *env) {
	_, d, t := e.pair()
	asked, hold := make(chan struct{}, 10), make(chan struct{})
	e.answer(d, func(_ context.Context, q []byte) []byte {
		if string(q) == "there?" {
			return nil
		}
		asked <- struct{}{}
		<-hold
		return q
	})
	e.asked(t, "there?")
	end := make(chan string, 1)
	go func() { end <- e.asked(t, "question") }()
	<-asked
	back := e.Outage(e.T)
	close(hold)
	<-e.moment()
	back()
	if got := <-end; got != "question" {
		e.Errorf("the answer is %q", got)
	}
}

func cancelled(e *env) {
	j, d, t := e.pair()
	e.deal(d, 1, "one")
	e.deal(d, 2, "two")
	l := e.take(t, 1, "one", 1)
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	e.all(ctx, e.connect(), j, d, t, l, func(err error) bool { return errors.Is(err, context.Canceled) })
	e.settle(t, l, true)
	e.settle(t, e.take(t, 2, "two", 1), true)
}

// cancelledWaits wants what waits to end with its context, and an item to be left to others.
func cancelledWaits(e *env) {
	_, d, t := e.pair()
	held := make(chan struct{})
	e.answer(d, func(ctx context.Context, q []byte) []byte {
		if string(q) == "there?" {
			return nil
		}
		<-held
		return nil
	})
	defer close(held)
	e.asked(t, "there?")
	ctx, cancel := context.WithCancel(e.ctx)
	ends := make(chan error, 2)
	go func() { _, err := t.Take(ctx); ends <- err }()
	go func() { _, err := t.Ask(ctx, []byte("for ever")); ends <- err }()
	<-e.moment()
	cancel()
	for range cap(ends) {
		if err := <-ends; !errors.Is(err, context.Canceled) {
			e.Error(err)
		}
	}
	e.deal(d, 1, "one")
	l, err := t.Take(e.ctx)
	if err != nil || l.ID != 1 || l.Attempt > 2 { // the Take that ended may have had it
		e.Fatalf("item 1 comes as %+v, %v", l, err)
	}
	e.settle(t, l, true)
}

// closed wants nothing to go on by a connection that is closed, and others to go on.
func closed(e *env) {
	j := job("copy", e.Name())
	b := e.connect()
	d, err := b.Open(e.ctx, j)
	if err != nil {
		e.Fatal(err)
	}
	t, err := b.Join(e.ctx, j)
	if err != nil {
		e.Fatal(err)
	}
	e.deal(d, 1, "one")
	l := e.take(t, 1, "one", 1)
	for range 2 {
		if err := b.Close(); err != nil {
			e.Error(err)
		}
	}
	e.all(e.ctx, b, j, d, t, l, func(err error) bool { return errors.Is(err, queue.ErrBroker) })
	d, t = e.open(j), e.join(j)
	e.deal(d, last, "last")
	e.settle(t, e.take(t, last, "last", 1), true)
}

func closedWaits(e *env) {
	j := job("copy", e.Name())
	db, tb := e.connect(), e.connect()
	d, err := db.Open(e.ctx, j)
	if err != nil {
		e.Fatal(err)
	}
	t, err := tb.Join(e.ctx, j)
	if err != nil {
		e.Fatal(err)
	}
	answered := make(chan error, 1)
	asked := make(chan struct{})
	go func() {
		answered <- d.Answer(e.ctx, func(ctx context.Context, q []byte) []byte {
			if string(q) != "there?" {
				close(asked)
				<-ctx.Done()
			}
			return q
		})
	}()
	e.asked(t, "there?")
	ends := make(chan error, 2)
	go func() { _, err := t.Take(e.ctx); ends <- err }()
	go func() { _, err := t.Ask(e.ctx, nil); ends <- err }()
	<-asked
	for _, b := range []queue.Broker{tb, db} {
		if err := b.Close(); err != nil {
			e.Error(err)
		}
	}
	for range cap(ends) {
		if err := <-ends; !errors.Is(err, queue.ErrBroker) {
			e.Errorf("a worker's: %v", err)
		}
	}
	if err := <-answered; !errors.Is(err, queue.ErrBroker) {
		e.Errorf("Answer: %v", err)
	}
}
