package jetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

// retryTime is between two attempts of a call that the broker did not answer, or has no room for.
const retryTime = 100 * time.Millisecond

// errAgain has call try once more.
var errAgain = errors.New("once more")

// Codes of JetStream's errors that nats.go has no names for.
const (
	codeStore       jetstream.ErrorCode = 10077 // the stream's bounds: it is full
	codeUnavailable jetstream.ErrorCode = 10008 // for now
)

// call calls f when there is a connection, again after each outage and failure that may pass,
// until it succeeds, fails for good, or ctx ends. The context of f ends with the connection, too.
func (b *Broker) call(ctx context.Context, f func(ctx context.Context) error) error {
	for {
		if err := b.connected(ctx); err != nil {
			return err
		}
		err := b.within(ctx, f)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isClosed(b.closed):
			return b.gone()
		}
		if err := b.judge(err); !errors.Is(err, errAgain) {
			return err
		}
		if err := b.pause(ctx); err != nil {
			return err
		}
	}
}

// connected waits for a connection.
func (b *Broker) connected(ctx context.Context) error {
	b.mu.Lock()
	up := b.up
	b.mu.Unlock()
	select {
	case <-up:
	case <-b.closed:
	case <-ctx.Done():
	}
	switch {
	case isClosed(b.closed):
		return b.gone()
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil
}

// within calls f until the connection is lost.
func (b *Broker) within(ctx context.Context, f func(ctx context.Context) error) error {
	b.mu.Lock()
	cut := b.cut
	b.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan struct{})
	defer func() { <-over }()
	go func() {
		defer close(over)
		select {
		case <-cut:
		case <-b.closed:
		case <-ctx.Done():
		}
		cancel()
	}()
	defer cancel() // before the wait for it
	return f(ctx)
}

// pause lets some time go by.
func (b *Broker) pause(ctx context.Context) error {
	timer := time.NewTimer(retryTime)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-b.closed:
		return b.gone()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// gone says why there will be no connection any more.
func (b *Broker) gone() error {
	if err := b.nc.LastError(); err != nil {
		return fmt.Errorf("%w: %s: the connection is closed: %w", queue.ErrBroker, b.hosts, err)
	}
	return fmt.Errorf("%w: %s: the connection is closed", queue.ErrBroker, b.hosts)
}

// passing are errors that say nothing of the queue: they may have gone at the next attempt.
var passing = []error{
	errAgain, context.Canceled, context.DeadlineExceeded, nats.ErrTimeout, nats.ErrDisconnected, nats.ErrConnectionReconnecting,
	nats.ErrReconnectBufExceeded, nats.ErrStaleConnection, nats.ErrNoResponders, jetstream.ErrNoHeartbeat,
	nats.ErrBadSubscription, nats.ErrConnectionClosed,
}

// judge says what the failure of a call means: errAgain, or what the contract has for it.
func (b *Broker) judge(err error) error {
	for _, final := range []error{queue.ErrLost, queue.ErrNobody, queue.ErrTooLong, queue.ErrForged, queue.ErrExpired, queue.ErrBroker} {
		if errors.Is(err, final) {
			return err
		}
	}
	if errors.Is(err, nats.ErrMaxPayload) {
		return fmt.Errorf("%w: %s takes messages of %d bytes at most: set its max_payload", queue.ErrTooLong, b.hosts, b.nc.MaxPayload())
	}
	if refused := b.refusal(); refused != nil && !errors.Is(err, nats.ErrPermissionViolation) {
		return fmt.Errorf("%w: %s refuses: %w", queue.ErrBroker, b.hosts, refused)
	}
	for _, p := range passing {
		if errors.Is(err, p) {
			return errAgain
		}
	}
	var api *jetstream.APIError
	if errors.As(err, &api) && (api.ErrorCode == codeStore || api.ErrorCode == codeUnavailable) {
		return errAgain
	}
	return fmt.Errorf("%w: %s refuses: %w", queue.ErrBroker, b.hosts, err)
}

// lost is the failure of a call about a run's queue. Where the queue may be gone, it looks.
func (b *Broker) lost(ctx context.Context, j queue.Job, err error) error {
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrConsumerNotFound):
		return fmt.Errorf("job %s: %w", j.Name, queue.ErrLost)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse),
		errors.Is(err, jetstream.ErrConsumerDeleted), errors.Is(err, jetstream.ErrNoHeartbeat):
		if _, err := b.js.Consumer(ctx, streamOf(j), consumer); err != nil {
			if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrConsumerNotFound) {
				return fmt.Errorf("job %s: %w", j.Name, queue.ErrLost)
			}
			return err
		}
		return errAgain
	}
	return err
}
