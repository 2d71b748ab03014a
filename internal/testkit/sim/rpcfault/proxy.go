package rpcfault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/sim"
)

// ErrClosed is returned by Serve and Dial once the proxy is closed.
var ErrClosed = errors.New("rpcfault: proxy closed")

// Options say which server a proxy leads to, and which faults it injects.
type Options struct {
	// Upstream connects to the server, once for each connection of a client.
	// Required. Its context ends with the proxy.
	Upstream func(ctx context.Context) (net.Conn, error)
	// Seed decides everything random.
	Seed  uint64
	Rules []Rule
}

// Proxy stands between clients and a server. All methods may be called
// concurrently.
type Proxy struct {
	opt  Options
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup // added to under mu, before closed

	mu        sync.Mutex // guards what follows
	closed    bool
	rand      *sim.Rand
	rules     []rule
	listeners []net.Listener
	network   *sim.Network // of Dial; nil before the first
	links     map[*link]struct{}
	refusing  time.Time // until when
	stats     Stats
}

// New returns a proxy without connections. The caller closes it.
func New(o Options) *Proxy {
	p := &Proxy{opt: o, rand: sim.NewRand(o.Seed), links: make(map[*link]struct{})}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.SetRules(o.Rules...)
	return p
}

// SetRules replaces the rules, for calls that come from now on. The new ones
// begin to count anew.
func (p *Proxy) SetRules(rules ...Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = make([]rule, len(rules))
	for i, r := range rules {
		p.rules[i] = rule{Rule: r, rand: p.rand.Fork()}
	}
}

// Serve accepts connections from l until the proxy is closed. It then closes l and returns ErrClosed.
func (p *Proxy) Serve(l net.Listener) error {
	if !p.adopt(l) {
		return errors.Join(ErrClosed, l.Close())
	}
	defer p.wg.Done()
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			p.accept(c)
		case p.ctx.Err() != nil:
			return ErrClosed
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("rpcfault: %w", err)
		default:
			p.pause(acceptPause)
		}
	}
}

// adopt makes l one of the listeners that Close closes.
func (p *Proxy) adopt(l net.Listener) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.listeners = append(p.listeners, l)
	p.wg.Add(1)
	return true
}

// pause waits, unless the proxy is closed.
func (p *Proxy) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.ctx.Done():
	}
}

// Dial connects to the proxy in memory, whatever the address: it has the type for
// nfsbox.WithDialer. While the proxy refuses, it is ECONNREFUSED.
func (p *Proxy) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	n, err := p.memory()
	if err != nil {
		return nil, err
	}
	if !p.admits() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return n.DialContext(ctx, "tcp", memoryAddr)
}

// memoryAddr is where the proxy listens in its own network.
const memoryAddr = "127.0.0.1:2049"

// memory returns the network of Dial, on which the proxy serves.
func (p *Proxy) memory() (*sim.Network, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if p.network != nil {
		return p.network, nil
	}
	n := sim.NewNetwork(p.opt.Seed)
	l, err := n.Listen(memoryAddr)
	if err != nil {
		return nil, err
	}
	p.network = n
	p.wg.Add(1)
	go func() {
		defer p.wg.Done()
		_ = p.Serve(l) // ErrClosed: nobody else has l
	}()
	return n, nil
}

// admits reports whether a new connection is accepted now, and counts refused ones.
func (p *Proxy) admits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Now().Before(p.refusing) || len(p.links) >= maxConns {
		p.stats.Refused++
		return false
	}
	return true
}

// accept takes a client's connection, or closes it.
func (p *Proxy) accept(c net.Conn) {
	if !p.admits() {
		cut(c, true)
		return
	}
	l := &link{p: p, done: make(chan struct{}), pending: make(map[uint32]owed)}
	l.toServer.link, l.toClient.link = l, l
	l.toClient.to = c
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		cut(c, true)
		return
	}
	p.stats.Conns++
	p.links[l] = struct{}{}
	p.wg.Add(1)
	go l.run()
}

// Refuse refuses new connections for d from now; existing ones stay.
func (p *Proxy) Refuse(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = time.Now().Add(d)
}

// Cut cuts all connections.
func (p *Proxy) Cut() {
	for _, l := range p.connections() {
		l.close(true)
	}
}

func (p *Proxy) connections() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	return links
}

// Close ends the proxy and all its connections, and waits for them.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	listeners := p.listeners
	p.listeners = nil
	p.mu.Unlock()
	p.stop()
	var errs []error
	for _, l := range listeners {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	p.Cut()
	p.wg.Wait()
	return errors.Join(errs...)
}

// Stats returns the proxy's counters.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Open = len(p.links)
	for l := range p.links {
		s.Waiting += int(l.toServer.waiting.Load() + l.toClient.waiting.Load())
	}
	return s
}

// decide matches a call with the rules.
func (p *Proxy) decide(m *Message) []firing {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Calls++
	var all []firing
	for i := range p.rules {
		r := &p.rules[i]
		if !r.about(m) {
			continue
		}
		if f, ok := r.fires(); ok {
			all = append(all, f)
		}
	}
	return all
}

func (p *Proxy) count(f func(s *Stats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.stats)
}

// injected counts an injected fault.
func (p *Proxy) injected(k Kind) { p.count(func(s *Stats) { s.Injected[k]++ }) }
