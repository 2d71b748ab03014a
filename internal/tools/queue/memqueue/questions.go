package memqueue

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

// responder is an Answer that is under way.
type responder struct {
	questions chan question
	gone      chan struct{} // closed when it has ended
}

// question is a question on its way.
type question struct {
	body   []byte
	answer chan<- answer // has room for one
}

// answer is what comes back.
type answer struct {
	body []byte
	err  error
}

// Answer implements [queue.Dealer].
func (e *end) Answer(ctx context.Context, reply func(ctx context.Context, question []byte) []byte) error {
	r := &responder{questions: make(chan question), gone: make(chan struct{})}
	if err := e.await(ctx, once(func() { e.s.answers[e.job.Run] = append(e.s.answers[e.job.Run], r) })); err != nil {
		return err
	}
	var replies sync.WaitGroup
	defer replies.Wait()
	defer e.retire(r)
	given, cancel := context.WithCancel(ctx)
	defer cancel()
	slots := make(chan struct{}, queue.MaxQuestions)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-e.closed:
			return errClosed
		}
		select {
		case q := <-r.questions:
			replies.Go(func() {
				body := slices.Clone(reply(given, q.body))
				q.answer <- answer{body, queue.CheckMessage(body)}
				<-slots
			})
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-e.closed:
			return errClosed
		}
	}
}

// retire takes a responder away.
func (e *end) retire(r *responder) {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	left := slices.DeleteFunc(e.s.answers[e.job.Run], func(other *responder) bool { return other == r })
	if e.s.answers[e.job.Run] = left; len(left) == 0 {
		delete(e.s.answers, e.job.Run)
	}
	close(r.gone)
}

// Ask implements [queue.Taker].
func (e *end) Ask(ctx context.Context, body []byte) ([]byte, error) {
	if err := queue.CheckMessage(body); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, queue.AskTime,
		fmt.Errorf("job %s: %w within %v", e.job.Name, queue.ErrNobody, queue.AskTime))
	defer cancel()
	for {
		var r *responder
		var cut chan struct{}
		err := e.await(ctx, func() (bool, time.Time, error) {
			all := e.s.answers[e.job.Run]
			if len(all) == 0 {
				return false, time.Time{}, fmt.Errorf("job %s: %w", e.job.Name, queue.ErrNobody)
			}
			r, cut = all[0], e.s.cut
			return true, time.Time{}, nil
		})
		if err != nil {
			return nil, err
		}
		if a, ok := e.put(ctx, r, cut, slices.Clone(body)); ok {
			return a.body, a.err
		}
	}
}

// put puts a question to a responder. It is not ok if the responder has gone or an outage came:
// then the question has to be put again.
func (e *end) put(ctx context.Context, r *responder, cut <-chan struct{}, body []byte) (a answer, ok bool) {
	back := make(chan answer, 1)
	q, to := question{body, back}, r.questions
	for {
		select {
		case to <- q:
			to = nil // it is on its way, once
		case a = <-back:
			select {
			case <-e.closed: // it came too late
				return answer{err: errClosed}, true
			default:
			}
			if a.err != nil {
				a.body = nil
			}
			return a, true
		case <-cut:
			return a, false
		case <-r.gone:
			return a, false
		case <-e.closed:
			return answer{err: errClosed}, true
		case <-ctx.Done():
			return answer{err: context.Cause(ctx)}, true
		}
	}
}
