package transfer

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// link is the way to a source: each read takes the delay, and then its turn.
type link struct {
	delay, each time.Duration
	turn        chan struct{}

	mu        sync.Mutex
	now, most int
}

func (l *link) fault(ctx context.Context, op string, _ vfs.Handle) error {
	if op != "read" {
		return nil
	}
	l.mu.Lock()
	l.now++
	l.most = max(l.most, l.now)
	l.mu.Unlock()
	time.Sleep(l.delay)
	l.turn <- struct{}{}
	time.Sleep(l.each)
	<-l.turn
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now--
	return ctx.Err()
}

// TestCrew: a file that comes from afar has more chunks in flight, as many as the way
// holds; one that comes from nearby, or has been given a window, has not.
func TestCrew(t *testing.T) {
	for _, c := range []struct {
		name        string
		delay, each time.Duration
		window      int
		budget      int
		least, most int // chunks in flight
	}{
		{"near", time.Millisecond, 0, 0, 64, DefaultWindow, DefaultWindow},
		{"far", 100 * time.Millisecond, 0, 0, 64, 48, 64}, // the budget leaves some to others
		{"far, without a budget", 100 * time.Millisecond, 0, 0, 0, MaxWindow, MaxWindow},
		{"far, with a window", 100 * time.Millisecond, 0, 3, 64, 3, 3},
		{"far, and slow", 100 * time.Millisecond, 20 * time.Millisecond, 0, 64, 5, 32},
		{"slow", 0, 20 * time.Millisecond, 0, 64, DefaultWindow, 2 * DefaultWindow},
		{"few chunks", 100 * time.Millisecond, 0, 0, 2, 2, 2},
	} {
		for what, run := range map[string]func(t *testing.T, dst *end, from Source, o *Options) error{
			"copy": func(t *testing.T, dst *end, from Source, o *Options) error {
				_, err := File(t.Context(), from, dst.target("f"), o)
				return err
			},
			"compare": func(t *testing.T, dst *end, from Source, o *Options) error {
				cmp, err := Compare(t.Context(), from, dst.file("f", pattern(500*MinChunk)), 500*MinChunk, o)
				if cmp.Differ {
					t.Errorf("%s: they differ at %d", c.name, cmp.Offset)
				}
				return err
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				l := &link{delay: c.delay, each: c.each, turn: make(chan struct{}, 1)}
				src, dst := mem(t, memfs.Options{Fault: l.fault}), mem(t, memfs.Options{})
				o := options(t)
				o.Chunk, o.Window = MinChunk, c.window
				if c.budget > 0 {
					o.Budget = NewBudget(c.budget)
				}
				if err := run(t, dst, src.file("f", pattern(500*MinChunk)), o); err != nil {
					t.Error(err)
				}
				if l.most < c.least || l.most > c.most {
					t.Errorf("%s, %s: %d chunks in flight, want %d to %d", what, c.name, l.most, c.least, c.most)
				}
			})
		}
	}
}
