package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
)

const (
	// listenBacklog bounds the connections that wait for Accept. At the bound a dial waits, as with
	// TCP, until its context ends.
	listenBacklog = 128
	// firstPort is where ephemeral ports start; they are never used twice.
	firstPort = 32768
	// maxPorts bounds the ephemeral ports; at the bound a dial is EADDRNOTAVAIL.
	maxPorts = 65536 - firstPort
)

// loopback is the host of an address that names none.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Network is a network in memory. Addresses look like TCP's ("10.0.0.1:2049"). All addresses
// reach each other, unless a test says otherwise. All methods may be called concurrently.
type Network struct {
	seed uint64

	mu        sync.Mutex
	listeners map[netip.AddrPort]*listener
	conns     map[*Conn]struct{} // dialling ends of connections that are not closed at both
	refused   map[netip.AddrPort]bool
	parted    map[netip.AddrPort]chan struct{} // closed when healed
	toServer  Faults                           // of new connections
	toClient  Faults
	dialed    uint64
	ports     int
}

// NewNetwork returns a network without faults. seed decides how reads are split: by connection,
// in the order of dialling, and by direction.
func NewNetwork(seed uint64) *Network {
	return &Network{
		seed:      seed,
		listeners: make(map[netip.AddrPort]*listener),
		conns:     make(map[*Conn]struct{}),
		refused:   make(map[netip.AddrPort]bool),
		parted:    make(map[netip.AddrPort]chan struct{}),
	}
}

// resolve parses "ip:port" and ":port".
func resolve(addr string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if host == "" {
		host = loopback.String()
	}
	return netip.ParseAddrPort(net.JoinHostPort(host, port))
}

// ephemeral returns an unused port. n.mu is held.
func (n *Network) ephemeral() (uint16, error) {
	if n.ports == maxPorts {
		return 0, syscall.EADDRNOTAVAIL
	}
	n.ports++
	return uint16(firstPort + n.ports - 1), nil
}

// Listen listens at addr, "ip:port" or ":port"; port 0 takes an unused one.
func (n *Network) Listen(addr string) (net.Listener, error) {
	at, err := resolve(addr)
	if err != nil {
		return nil, fmt.Errorf("sim: listen %s: %w", addr, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if at.Port() == 0 {
		port, err := n.ephemeral()
		if err != nil {
			return nil, opError("listen", nil, at, err)
		}
		at = netip.AddrPortFrom(at.Addr(), port)
	}
	if n.listeners[at] != nil {
		return nil, opError("listen", nil, at, syscall.EADDRINUSE)
	}
	l := &listener{net: n, at: at, queue: make(chan *Conn, listenBacklog), done: make(chan struct{})}
	n.listeners[at] = l
	return l, nil
}

// Dial connects to addr from the loopback host.
func (n *Network) Dial(ctx context.Context, addr string) (*Conn, error) {
	return n.DialFrom(ctx, "", addr)
}

// DialContext has the type of net.Dialer.DialContext; it ignores network.
func (n *Network) DialContext(ctx context.Context, _, addr string) (net.Conn, error) {
	c, err := n.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// DialFrom connects to addr from the local address from: "ip:port", where port
// 0 takes an unused one, or "". It waits while addr is partitioned or its
// backlog is full, until ctx ends.
func (n *Network) DialFrom(ctx context.Context, from, addr string) (*Conn, error) {
	to, err := resolve(addr)
	if err != nil {
		return nil, fmt.Errorf("sim: dial %s: %w", addr, err)
	}
	local := netip.AddrPortFrom(loopback, 0)
	if from != "" {
		if local, err = resolve(from); err != nil {
			return nil, fmt.Errorf("sim: dial from %s: %w", from, err)
		}
	}
	if err := n.waitHealed(ctx, to); err != nil {
		return nil, opError("dial", nil, to, err)
	}
	client, l, err := n.connect(local, to)
	if err != nil {
		return nil, opError("dial", nil, to, err)
	}
	select {
	case l.queue <- client.peer:
		return client, nil
	case <-l.done:
		err = syscall.ECONNREFUSED
	case <-ctx.Done():
		err = ctx.Err()
	}
	client.Reset()
	return nil, opError("dial", nil, to, err)
}

// waitHealed waits until addr can be reached.
func (n *Network) waitHealed(ctx context.Context, addr netip.AddrPort) error {
	for {
		n.mu.Lock()
		healed := n.parted[addr]
		n.mu.Unlock()
		if healed == nil {
			return ctx.Err()
		}
		select {
		case <-healed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// connect makes the two ends of a connection.
func (n *Network) connect(local, to netip.AddrPort) (*Conn, *listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.listeners[to]
	if l == nil || n.refused[to] {
		return nil, nil, syscall.ECONNREFUSED
	}
	if local.Port() == 0 {
		port, err := n.ephemeral()
		if err != nil {
			return nil, nil, err
		}
		local = netip.AddrPortFrom(local.Addr(), port)
	}
	up := newStream(newRand(n.seed, 2*n.dialed), n.toServer)
	down := newStream(newRand(n.seed, 2*n.dialed+1), n.toClient)
	n.dialed++
	up.parted, down.parted = n.parted[to] != nil, n.parted[to] != nil
	client := &Conn{net: n, in: down, out: up, local: local, remote: to}
	client.peer = &Conn{net: n, in: up, out: down, local: to, remote: local, peer: client}
	n.conns[client] = struct{}{}
	return client, l, nil
}

// forget notes that c was closed. A connection is dropped when its second end closes: bytes of
// the first may still be in flight, and a partition may hold them.
func (n *Network) forget(c *Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c.closed = true
	if c.peer.closed {
		delete(n.conns, c)
		delete(n.conns, c.peer)
	}
}

// SetFaults sets the faults of connections that are dialled from now on, for each direction.
// Existing ones have [Conn.SetFaults].
func (n *Network) SetFaults(toServer, toClient Faults) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.toServer, n.toClient = toServer, toClient
}

// Refuse makes dials to addr fail with ECONNREFUSED, or ends that.
func (n *Network) Refuse(addr string, refuse bool) error {
	at, err := resolve(addr)
	if err != nil {
		return fmt.Errorf("sim: refuse %s: %w", addr, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refused[at] = refuse
	return nil
}

// Partition separates addr from all others: bytes on its connections are held back in both
// directions, and dials wait. Nothing is lost, because TCP would send it again. A second
// Partition changes nothing.
func (n *Network) Partition(addr string) error { return n.part(addr, true) }

// Heal ends a partition: what was held back arrives.
func (n *Network) Heal(addr string) error { return n.part(addr, false) }

func (n *Network) part(addr string, part bool) error {
	at, err := resolve(addr)
	if err != nil {
		return fmt.Errorf("sim: partition %s: %w", addr, err)
	}
	n.mu.Lock()
	healed := n.parted[at]
	switch {
	case part && healed == nil:
		n.parted[at] = make(chan struct{})
	case !part && healed != nil:
		delete(n.parted, at)
		close(healed)
	}
	conns := n.connsOf(at)
	n.mu.Unlock()
	for _, c := range conns {
		c.in.hold(part)
		c.out.hold(part)
	}
	return nil
}

// connsOf lists the connections to addr. n.mu is held.
func (n *Network) connsOf(addr netip.AddrPort) []*Conn {
	var conns []*Conn
	for c := range n.conns {
		if c.remote == addr {
			conns = append(conns, c)
		}
	}
	return conns
}

// Conns lists the open connections to addr by their dialling ends, in no
// particular order.
func (n *Network) Conns(addr string) ([]*Conn, error) {
	at, err := resolve(addr)
	if err != nil {
		return nil, fmt.Errorf("sim: connections of %s: %w", addr, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(n.connsOf(at), func(c *Conn) bool { return c.closed }), nil
}

// listener accepts connections of a Network.
type listener struct {
	net   *Network
	at    netip.AddrPort
	queue chan *Conn
	done  chan struct{}
	once  sync.Once
}

// Accept returns the next connection, a *[Conn].
func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
		return nil, opError("accept", nil, l.at, net.ErrClosed)
	default:
	}
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, opError("accept", nil, l.at, net.ErrClosed)
	}
}

// Close frees the address and resets the connections that were not accepted.
func (l *listener) Close() error {
	err := net.ErrClosed
	l.once.Do(func() {
		err = nil
		l.net.mu.Lock()
		delete(l.net.listeners, l.at)
		l.net.mu.Unlock()
		close(l.done)
		for range listenBacklog {
			select {
			case c := <-l.queue:
				c.Reset()
			default:
				return
			}
		}
	})
	if err != nil {
		return opError("close", nil, l.at, err)
	}
	return nil
}

func (l *listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.at) }

// opError wraps err as package net does. errors.Is still finds an exceeded deadline and an
// ended context.
func opError(op string, local net.Addr, remote netip.AddrPort, err error) error {
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		err = os.NewSyscallError(op, e)
	}
	return &net.OpError{Op: op, Net: "tcp", Source: local, Addr: net.TCPAddrFromAddrPort(remote), Err: err}
}
