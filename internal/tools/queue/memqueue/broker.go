package memqueue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

// broker is a connection.
type broker struct {
	s      *Server
	once   sync.Once
	closed chan struct{}
}

var errClosed = fmt.Errorf("%w: the connection is closed", queue.ErrBroker)

// await tries step under the server's lock, again after each change and at the time that it
// names, until it is done. While the server cannot be reached, step is not tried.
func (b *broker) await(ctx context.Context, step func() (done bool, again time.Time, err error)) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		done, again, changed, err := b.try(step)
		if done || err != nil {
			return err
		}
		if err := b.pause(ctx, changed, again); err != nil {
			return err
		}
	}
}

// try calls step once, if the server can be reached.
func (b *broker) try(step func() (bool, time.Time, error)) (done bool, again time.Time, changed <-chan struct{}, err error) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	select {
	case <-b.closed:
		return false, again, nil, errClosed
	default:
	}
	if !b.s.down {
		done, again, err = step()
	}
	return done, again, b.s.changed, err
}

// pause waits for a change, or for a time that is not zero.
func (b *broker) pause(ctx context.Context, changed <-chan struct{}, again time.Time) error {
	var at <-chan time.Time
	if !again.IsZero() {
		timer := time.NewTimer(time.Until(again))
		defer timer.Stop()
		at = timer.C
	}
	select {
	case <-changed:
	case <-at:
	case <-b.closed:
		return errClosed
	case <-ctx.Done():
	}
	return nil
}

// once is a step that needs no second try.
func once(f func()) func() (bool, time.Time, error) {
	return func() (bool, time.Time, error) {
		f()
		return true, time.Time{}, nil
	}
}

// within is a step in a run's queue, and ErrLost without it.
func (b *broker) within(j queue.Job, step func(r *run) (done bool, again time.Time)) func() (bool, time.Time, error) {
	return func() (bool, time.Time, error) {
		r := b.s.runs[j.Run]
		if r == nil {
			return false, time.Time{}, fmt.Errorf("job %s: %w", j.Name, queue.ErrLost)
		}
		done, again := step(r)
		return done, again, nil
	}
}

// Open implements [queue.Broker].
func (b *broker) Open(ctx context.Context, j queue.Job) (queue.Dealer, error) {
	if err := j.Check(); err != nil {
		return nil, err
	}
	if err := b.await(ctx, once(func() { b.s.open(j) })); err != nil {
		return nil, err
	}
	return &end{b, j}, nil
}

// Remove implements [queue.Broker].
func (b *broker) Remove(ctx context.Context, j queue.Job) error {
	return b.await(ctx, once(func() {
		delete(b.s.runs, j.Run)
		b.s.wake()
	}))
}

// Jobs implements [queue.Broker].
func (b *broker) Jobs(ctx context.Context) (jobs []queue.Job, err error) {
	err = b.await(ctx, once(func() {
		for _, r := range b.s.runs {
			j := r.job
			j.Spec = slices.Clone(j.Spec)
			jobs = append(jobs, j)
		}
	}))
	slices.SortFunc(jobs, func(x, y queue.Job) int { return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Run, y.Run)) })
	return jobs[:min(len(jobs), queue.MaxJobs)], err
}

// Join implements [queue.Broker].
func (b *broker) Join(ctx context.Context, j queue.Job) (queue.Taker, error) {
	if err := j.Check(); err != nil {
		return nil, err
	}
	there := func(*run) (bool, time.Time) { return true, time.Time{} }
	if err := b.await(ctx, b.within(j, there)); err != nil {
		return nil, err
	}
	return &end{b, j}, nil
}

// Close implements [queue.Broker].
func (b *broker) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}
