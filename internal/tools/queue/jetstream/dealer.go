package jetstream

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

const (
	// maxWaiting and maxWaitingBytes are how many questions, and of how many bytes, wait for one
	// of MaxQuestions to be answered. Further ones are lost, and their askers wait in vain.
	maxWaiting      = 1024
	maxWaitingBytes = 128 << 20

	// tooLong is the header of an answer that there is none: it, or its question, was too long.
	tooLong = "Nfsbox-Too-Long"
	// nobody is the header of an answer that there is none: its Answer has ended meanwhile.
	nobody = "Nfsbox-Nobody"

	// leaveTime bounds how long Answer takes leave of those who ask.
	leaveTime = 2 * time.Second
)

// dealer is a coordinator's end of a run's queue.
type dealer struct {
	b   *Broker
	job queue.Job
}

// Deal implements [queue.Dealer].
func (d *dealer) Deal(ctx context.Context, it queue.Item) error {
	if err := it.Check(); err != nil {
		return err
	}
	return d.b.call(ctx, func(ctx context.Context) error {
		ack, err := d.b.js.Publish(ctx, itemSubject(d.job, it.ID), it.Body,
			jetstream.WithExpectStream(streamOf(d.job)), jetstream.WithRetryAttempts(0))
		if err != nil {
			return d.b.lost(ctx, d.job, err)
		}
		return refuseEmpty(d.job, ack)
	})
}

// Announce implements [queue.Dealer].
func (d *dealer) Announce(ctx context.Context) error {
	return d.b.call(ctx, func(ctx context.Context) error {
		ack, err := d.b.js.Publish(ctx, subjectOf(d.job)+"job", d.job.Spec,
			jetstream.WithExpectStream(streamOf(d.job)), jetstream.WithRetryAttempts(0))
		if err != nil {
			return d.b.lost(ctx, d.job, err)
		}
		return refuseEmpty(d.job, ack)
	})
}

// Answer implements [queue.Dealer].
func (d *dealer) Answer(ctx context.Context, reply func(ctx context.Context, question []byte) []byte) error {
	var sub *nats.Subscription
	err := d.b.call(ctx, func(context.Context) (err error) {
		if sub, err = d.b.nc.QueueSubscribeSync(subjectOf(d.job)+"ask", "coordinators"); err != nil {
			return err
		}
		return sub.SetPendingLimits(maxWaiting, maxWaitingBytes)
	})
	if err != nil {
		return err
	}
	d.heard(ctx)
	given, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	watch.Go(func() {
		defer cancel()
		select {
		case <-d.b.closed:
		case <-given.Done():
		}
	})
	var replies sync.WaitGroup
	defer replies.Wait()
	defer cancel()
	defer leave(sub)
	slots := make(chan struct{}, queue.MaxQuestions)
	for {
		select {
		case slots <- struct{}{}:
		case <-given.Done():
			return d.ended(ctx)
		}
		m, err := sub.NextMsgWithContext(given)
		switch {
		case err == nil:
			replies.Go(func() {
				defer func() { <-slots }()
				d.reply(given, m, reply)
			})
		case given.Err() != nil:
			return d.ended(ctx)
		case errors.Is(err, nats.ErrSlowConsumer): // some were lost, and their askers find out
			<-slots
		default:
			<-slots
			if err := d.b.judge(err); !errors.Is(err, errAgain) {
				return err
			}
			if err := d.b.pause(ctx); err != nil { // the connection may be closing
				return err
			}
		}
	}
}

// heard waits until the broker knows of a subscription: then the first wait for a question tells
// whether it is allowed. In an outage the broker hears of it later.
func (d *dealer) heard(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_ = d.b.nc.FlushWithContext(ctx)
}

// leave has the broker send no more questions, and says to those who have asked that nobody answers.
// Without it they would wait for queue.AskTime. The connection may be gone: then they do.
func leave(sub *nats.Subscription) {
	if err := sub.Drain(); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return
		}
		_ = m.RespondMsg(&nats.Msg{Header: nats.Header{nobody: {"1"}}})
	}
}

// ended says why Answer has ended.
func (d *dealer) ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return d.b.gone()
}

// reply answers a question. An answer that cannot be sent is lost: its asker finds out.
func (d *dealer) reply(ctx context.Context, m *nats.Msg, reply func(ctx context.Context, question []byte) []byte) {
	answer := &nats.Msg{}
	err := queue.CheckMessage(m.Data)
	if err == nil {
		answer.Data = reply(ctx, m.Data)
		err = queue.CheckMessage(answer.Data)
	}
	if err != nil {
		answer = &nats.Msg{Header: nats.Header{tooLong: {"1"}}}
	}
	_ = m.RespondMsg(answer)
}
