package worker

import (
	"context"
	"sync"
	"time"
)

// backlog counts files that a worker has and has not begun with.
type backlog struct {
	mu   sync.Mutex
	n    int
	less chan struct{} // closed when there are fewer; nil: nothing waits
}

func (b *backlog) add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n += n; n < 0 && b.less != nil {
		close(b.less)
		b.less = nil
	}
}

// below waits until there are fewer than n. The error is ctx's.
func (b *backlog) below(ctx context.Context, n int) error {
	for {
		b.mu.Lock()
		if b.n < n {
			b.mu.Unlock()
			return ctx.Err()
		}
		if b.less == nil {
			b.less = make(chan struct{})
		}
		less := b.less
		b.mu.Unlock()
		select {
		case <-less:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// gate is open or shut. The zero gate is open.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed when it is opened; nil: it is open
}

// shut reports whether it was open.
func (g *gate) shut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		return false
	}
	g.opened = make(chan struct{})
	return true
}

// open reports whether it was shut.
func (g *gate) open() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		return false
	}
	close(g.opened)
	g.opened = nil
	return true
}

func (g *gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened == nil
}

// pass waits until it is open. The error is ctx's.
func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	if opened == nil {
		return ctx.Err()
	}
	select {
	case <-opened:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// term is a time that is extended again and again. The zero term has ended.
type term struct {
	mu    sync.Mutex
	until time.Time
	later chan struct{} // closed when it is extended; nil: nothing waits
}

func (t *term) extend(until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.until = until; t.later != nil {
		close(t.later)
		t.later = nil
	}
}

// runs reports whether it has not ended.
func (t *term) runs() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Now().Before(t.until)
}

// pass waits until it has not ended. The error is ctx's.
func (t *term) pass(ctx context.Context) error {
	for {
		t.mu.Lock()
		if time.Now().Before(t.until) {
			t.mu.Unlock()
			return ctx.Err()
		}
		if t.later == nil {
			t.later = make(chan struct{})
		}
		later := t.later
		t.mu.Unlock()
		select {
		case <-later:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
