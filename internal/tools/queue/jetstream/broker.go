package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

const (
	// maxBytes is what a run's stream holds of items, in bytes: 128 of the longest, over a thousand usual
	// ones. Deal waits for room. The broker sets as much of its memory aside.
	maxBytes = 64 << 20

	// maxListed is how many streams of a broker are looked at for jobs. Further ones are left out.
	maxListed = 16 * queue.MaxJobs
)

// streamConfig is what a run's stream is.
func streamConfig(j queue.Job) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              streamOf(j),
		Description:       "nfsbox: batches of the job " + j.Name,
		Subjects:          []string{subjectOf(j) + "job", subjectOf(j) + "item.*"},
		Retention:         jetstream.WorkQueuePolicy,
		Storage:           jetstream.MemoryStorage,
		Discard:           jetstream.DiscardNew,
		MaxMsgs:           queue.MaxDealt + 1, // and the job
		MaxBytes:          maxBytes,
		MaxMsgsPerSubject: 1,
		MaxConsumers:      1,
	}
}

// consumerConfig is how a run's items are leased.
func (b *Broker) consumerConfig(j queue.Job) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       consumer,
		FilterSubject: subjectOf(j) + "item.*",
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       b.lease,
		MaxDeliver:    queue.MaxLeases,
		MaxAckPending: queue.MaxDealt,
		MemoryStorage: true,
	}
}

// Open implements [queue.Broker].
func (b *Broker) Open(ctx context.Context, j queue.Job) (queue.Dealer, error) {
	if err := j.Check(); err != nil {
		return nil, err
	}
	j.Spec = slices.Clone(j.Spec)
	err := b.call(ctx, func(ctx context.Context) error {
		if err := b.removeEarlier(ctx, j); err != nil {
			return err
		}
		s, err := b.js.CreateStream(ctx, streamConfig(j))
		if err != nil {
			return err
		}
		if _, err := s.CreateOrUpdateConsumer(ctx, b.consumerConfig(j)); err != nil {
			return err
		}
		// The job comes last: whoever finds it finds all of the queue.
		_, err = b.js.Publish(ctx, subjectOf(j)+"job", j.Spec, jetstream.WithExpectStream(streamOf(j)))
		return err
	})
	if err != nil {
		return nil, err
	}
	return &dealer{b, j}, nil
}

// removeEarlier removes the streams of other runs of a job.
func (b *Broker) removeEarlier(ctx context.Context, j queue.Job) error {
	return b.list(ctx, jobSubject(j.Name)+">", func(other queue.Job) error {
		if other.Name != j.Name || other.Run == j.Run {
			return nil
		}
		return b.remove(ctx, other)
	})
}

// remove removes a run's stream, if it is there.
func (b *Broker) remove(ctx context.Context, j queue.Job) error {
	if err := b.js.DeleteStream(ctx, streamOf(j)); !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	return nil
}

// list calls each with the jobs of streams that have subjects like that, without their Spec.
func (b *Broker) list(ctx context.Context, subject string, each func(j queue.Job) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the lister ends with it
	lister := b.js.StreamNames(ctx, jetstream.WithStreamListSubject(subject))
	n := 0
	for name := range lister.Name() {
		if n++; n > maxListed {
			return nil
		}
		if j, ok := jobOf(name); ok {
			if err := each(j); err != nil {
				return err
			}
		}
	}
	return lister.Err()
}

// Remove implements [queue.Broker].
func (b *Broker) Remove(ctx context.Context, j queue.Job) error {
	if err := j.Check(); err != nil {
		return err
	}
	return b.call(ctx, func(ctx context.Context) error { return b.remove(ctx, j) })
}

// errEnough ends a listing.
var errEnough = errors.New("enough")

// Jobs implements [queue.Broker].
func (b *Broker) Jobs(ctx context.Context) (jobs []queue.Job, err error) {
	err = b.call(ctx, func(ctx context.Context) error {
		jobs = nil
		err := b.list(ctx, subjects+">", func(j queue.Job) error {
			found, err := b.fill(ctx, &j)
			if found {
				jobs = append(jobs, j)
			}
			if err == nil && len(jobs) == queue.MaxJobs {
				return errEnough
			}
			return err
		})
		if errors.Is(err, errEnough) {
			return nil
		}
		return err
	})
	return jobs, err
}

// fill adds the Spec to a job. It is not found if there is none, or none that is possible: the
// stream is being made or removed, or not of ours.
func (b *Broker) fill(ctx context.Context, j *queue.Job) (found bool, err error) {
	s, err := b.js.Stream(ctx, streamOf(*j))
	if err == nil {
		var m *jetstream.RawStreamMsg
		if m, err = s.GetLastMsgForSubject(ctx, subjectOf(*j)+"job"); err == nil {
			j.Spec = m.Data
			return j.Check() == nil, nil
		}
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	return false, err
}

// Join implements [queue.Broker].
func (b *Broker) Join(ctx context.Context, j queue.Job) (queue.Taker, error) {
	if err := j.Check(); err != nil {
		return nil, err
	}
	t := &taker{b: b, job: j}
	err := b.call(ctx, func(ctx context.Context) (err error) {
		t.items, err = b.js.Consumer(ctx, streamOf(j), consumer)
		return b.lost(ctx, j, err)
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// refuseEmpty is ErrLost for a message that came first into a stream: the job has to be there before.
func refuseEmpty(j queue.Job, ack *jetstream.PubAck) error {
	if ack.Sequence == 1 {
		return fmt.Errorf("job %s: %w", j.Name, queue.ErrLost)
	}
	return nil
}
