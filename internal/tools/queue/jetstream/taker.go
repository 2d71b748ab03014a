package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

// What a consumer is told of a message that it has handed out.
const (
	ackDone = "+ACK"
	ackNot  = "-NAK"
	ackMore = "+WPI"
	ackTerm = "+TERM"
)

// taker is a worker's end of a run's queue.
type taker struct {
	b     *Broker
	job   queue.Job
	items jetstream.Consumer
}

// token is a message that was handed out.
type token struct {
	reply string // the subject at which the consumer hears of it

	mu    sync.Mutex
	until time.Time
}

// held reports whether the lease has not ended.
func (t *token) held() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Now().Before(t.until)
}

// extend notes a lease that began at a time. It ends here somewhat earlier than at the broker:
// what is on its way meanwhile has to come in time.
func (t *token) extend(from time.Time, lease time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if until := from.Add(lease - lease/10); until.After(t.until) {
		t.until = until
	}
}

// Take implements [queue.Taker].
func (t *taker) Take(ctx context.Context) (l *queue.Lease, err error) {
	err = t.b.call(ctx, func(ctx context.Context) error {
		m, err := t.next(ctx)
		if err != nil {
			return t.b.lost(ctx, t.job, err)
		}
		if l, err = t.lease(m); err != nil && m.Reply() != "" {
			// It would come again, and again be wrong.
			return errors.Join(err, t.b.nc.Publish(m.Reply(), []byte(ackTerm)))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// beatTime is how often the broker says that a Take still waits. After two without a word we look
// whether the queue is there: servers before 2.10 do not answer for one that is gone.
const beatTime = 2 * time.Second

// undated is a context whose end is not known beforehand: nats.go would ask for fewer beats.
type undated struct{ context.Context }

func (undated) Deadline() (time.Time, bool) { return time.Time{}, false }

// next waits for a message.
func (t *taker) next(ctx context.Context) (jetstream.Msg, error) {
	batch, err := t.items.Fetch(1, jetstream.FetchContext(undated{ctx}), jetstream.FetchHeartbeat(beatTime))
	if err != nil {
		return nil, err
	}
	for m := range batch.Messages() {
		return m, nil
	}
	if err := batch.Error(); err != nil {
		return nil, err
	}
	return nil, errAgain // there was none for a while
}

// lease judges a message.
func (t *taker) lease(m jetstream.Msg) (*queue.Lease, error) {
	meta, err := m.Metadata()
	if err != nil || meta.Stream != streamOf(t.job) || meta.Consumer != consumer ||
		meta.NumDelivered < 1 || meta.NumDelivered > queue.MaxLeases {
		return nil, fmt.Errorf("job %s, subject %.200q, reply %.200q: %w", t.job.Name, m.Subject(), m.Reply(), queue.ErrForged)
	}
	id, err := itemOf(t.job, m.Subject())
	if err != nil {
		return nil, err
	}
	it := queue.Item{ID: id, Body: m.Data()}
	if err := it.Check(); err != nil {
		return nil, err
	}
	tok := &token{reply: m.Reply()}
	tok.extend(time.Now(), t.b.lease)
	return &queue.Lease{Item: it, Attempt: int(meta.NumDelivered), Token: tok}, nil
}

// Extend implements [queue.Taker].
func (t *taker) Extend(ctx context.Context, l *queue.Lease) error {
	tok, ok := l.Token.(*token)
	if !ok {
		return queue.ErrForged
	}
	return t.b.call(ctx, func(ctx context.Context) error {
		if !tok.held() {
			return fmt.Errorf("job %s, item %d: %w", t.job.Name, l.ID, queue.ErrExpired)
		}
		asked := time.Now()
		err := t.tell(ctx, tok, ackMore)
		if err == nil {
			tok.extend(asked, t.b.lease)
		}
		return err
	})
}

// Settle implements [queue.Taker].
func (t *taker) Settle(ctx context.Context, l *queue.Lease, done bool) error {
	tok, ok := l.Token.(*token)
	if !ok {
		return queue.ErrForged
	}
	return t.b.call(ctx, func(ctx context.Context) error {
		switch {
		case done:
			return t.tell(ctx, tok, ackDone)
		case tok.held():
			return t.tell(ctx, tok, ackNot)
		}
		return nil // another may have it, whose lease would end
	})
}

// tell tells the consumer of a message, and waits until it has heard it.
func (t *taker) tell(ctx context.Context, tok *token, word string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_, err := t.b.nc.RequestWithContext(ctx, tok.reply, []byte(word))
	return t.b.lost(ctx, t.job, err)
}

// Ask implements [queue.Taker].
func (t *taker) Ask(ctx context.Context, question []byte) (answer []byte, err error) {
	if err := queue.CheckMessage(question); err != nil {
		return nil, err
	}
	none := fmt.Errorf("job %s: %w", t.job.Name, queue.ErrNobody)
	ctx, cancel := context.WithTimeoutCause(ctx, queue.AskTime, fmt.Errorf("%w within %v", none, queue.AskTime))
	defer cancel()
	err = t.b.call(ctx, func(ctx context.Context) error {
		m, err := t.b.nc.RequestWithContext(ctx, subjectOf(t.job)+"ask", question)
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return none
		case err != nil:
			return err
		case len(m.Header[nobody]) > 0:
			return none
		case len(m.Header[tooLong]) > 0:
			return fmt.Errorf("job %s: the coordinator finds the question, or its answer, %w", t.job.Name, queue.ErrTooLong)
		}
		answer = m.Data
		return queue.CheckMessage(answer)
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}
