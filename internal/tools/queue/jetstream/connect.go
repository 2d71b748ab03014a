package jetstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

const (
	// dialTime bounds the way to one server, with its greeting.
	dialTime = 5 * time.Second
	// answerTime bounds how long the broker may take to answer us. Then it is asked again.
	answerTime = 5 * time.Second
	// refusalTime is how long what the broker has not allowed may be why it does not answer.
	refusalTime = 2 * answerTime
	// pingTime is between two pings. After maxPings without an answer the connection is given
	// up, and another made.
	pingTime = 5 * time.Second
	maxPings = 2
	// redialTime is between two attempts to connect again, which go on until Close.
	redialTime = 250 * time.Millisecond
	// minPayload is what the broker has to take in one message: the longest, and its headers.
	minPayload = max(queue.MaxItem, queue.MaxMessage) + 4096
)

// Broker is a connection to a nats-server, or to a cluster of them.
type Broker struct {
	nc    *nats.Conn
	js    jetstream.JetStream
	lease time.Duration // queue.LeaseTime, but in tests
	hosts string        // for errors

	closed chan struct{} // closed when the connection is lost for good
	ended  chan struct{} // closed when nats.go has said so: it calls nothing of ours any more

	mu      sync.Mutex
	up      chan struct{} // closed while there is a connection
	cut     chan struct{} // closed while there is none
	refused error         // the last thing that the broker has not allowed
	when    time.Time     // of that
}

// Connect connects to a broker. Errors are of the options, or ErrBroker: it cannot be reached, it
// refuses us, or it lacks what we need. Outages that come later are waited out.
func Connect(ctx context.Context, o Options) (*Broker, error) {
	opts, err := o.nats()
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	b := &Broker{
		lease:  queue.LeaseTime,
		hosts:  o.hosts(),
		closed: make(chan struct{}),
		ended:  make(chan struct{}),
		up:     make(chan struct{}),
		cut:    make(chan struct{}),
	}
	close(b.up)
	life, cancel := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, cancel)
	b.nc, err = nats.Connect(strings.Join(o.URLs, ","), append(opts, b.handlers(life, cancel)...)...)
	if err != nil {
		cancel()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, b.unconnected(err)
	}
	if b.js, err = jetstream.New(b.nc); err == nil {
		err = b.check(ctx)
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// handlers are the options that hold for all our connections. life ends with the connection.
func (b *Broker) handlers(life context.Context, end func()) []nats.Option {
	return []nats.Option{
		nats.Timeout(dialTime),
		nats.SetCustomDialer(dialer{life}),
		nats.PingInterval(pingTime),
		nats.MaxPingsOutstanding(maxPings),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(redialTime),
		nats.ReconnectBufSize(-1), // what cannot be sent is told at once: we try again ourselves
		nats.PermissionErrOnSubscribe(true),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { b.turn(false) }),
		nats.ReconnectHandler(func(*nats.Conn) { b.turn(true) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { b.note(err) }),
		nats.ClosedHandler(func(*nats.Conn) {
			b.end()
			end()
			close(b.ended)
		}),
	}
}

// dialer dials for as long as the connection may live.
type dialer struct{ life context.Context }

func (d dialer) Dial(network, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: dialTime}).DialContext(d.life, network, address)
}

// check looks for what we need of a broker.
func (b *Broker) check(ctx context.Context) error {
	if limit := b.nc.MaxPayload(); limit < minPayload {
		return fmt.Errorf("%w: %s takes messages of %d bytes, and has to take %d: set its max_payload", queue.ErrBroker, b.hosts, limit, minPayload)
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_, err := b.js.AccountInfo(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w: %s has no JetStream, for us at least: start nats-server with -js, or enable it for the account", queue.ErrBroker, b.hosts)
	}
	if refused := b.refusal(); refused != nil {
		err = refused
	}
	return fmt.Errorf("%w: %s refuses: %w", queue.ErrBroker, b.hosts, err)
}

// unconnected says why there is no connection.
func (b *Broker) unconnected(err error) error {
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	for _, refusal := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired,
		nats.ErrSecureConnRequired, nats.ErrSecureConnWanted, nats.ErrNkeysNotSupported, nats.ErrPermissionViolation} {
		if errors.Is(err, refusal) {
			return fmt.Errorf("%w: %s refuses: %w", queue.ErrBroker, b.hosts, err)
		}
	}
	if errors.As(err, &cert) || errors.As(err, &record) {
		return fmt.Errorf("%w: %s is not trusted: %w", queue.ErrBroker, b.hosts, err)
	}
	return fmt.Errorf("%w: %s cannot be reached: %w", queue.ErrBroker, b.hosts, err)
}

// turn notes that the connection is there, or that it is not.
func (b *Broker) turn(up bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := isClosed(b.up)
	switch {
	case up && !was:
		close(b.up)
		b.cut = make(chan struct{})
	case !up && was:
		b.up = make(chan struct{})
		close(b.cut)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// note keeps what the broker does not allow: whoever waits for an answer finds it.
func (b *Broker) note(err error) {
	if errors.Is(err, nats.ErrPermissionViolation) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.refused, b.when = err, time.Now()
	}
}

// refusal is what the broker has not allowed lately.
func (b *Broker) refusal() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.when) > refusalTime {
		return nil
	}
	return b.refused
}

// end has all that waits return.
func (b *Broker) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !isClosed(b.closed) {
		close(b.closed)
	}
}

// Close implements [queue.Broker].
func (b *Broker) Close() error {
	b.end()
	b.nc.Close()
	<-b.ended
	return nil
}
