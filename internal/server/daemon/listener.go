package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/nfsbox/nfsbox/nfsserver"
)

// listener is a socket that clients reach: one that accepts connections, or one for datagrams.
type listener struct {
	l       net.Listener
	pc      net.PacketConn
	portmap bool   // for the port mapper alone
	open    func() // called when the server has begun to let clients in
}

func (x *listener) addr() net.Addr {
	if x.l != nil {
		return x.l.Addr()
	}
	return x.pc.LocalAddr()
}

func (x *listener) close() error {
	if x.l != nil {
		return x.l.Close()
	}
	return x.pc.Close()
}

// closeAll closes listeners. It does not mind those that the server has closed.
func closeAll(listeners []listener) (err error) {
	for i := range listeners {
		if e := listeners[i].close(); !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// family is the network for an address to listen at. An address of IPv4, 0.0.0.0 included,
// is not reached over IPv6; no address at all is reached over both.
func family(network, address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return network
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
		return network + "4"
	}
	return network
}

func listenTCP(ctx context.Context, key, address string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, family("tcp", address), address)
	if err != nil {
		return nil, listenError("tcp", key, address, err)
	}
	return l, nil
}

// bindable returns an error if an address of key is none of this host, whichever port is free.
func bindable(ctx context.Context, key, address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	l, err := listenTCP(ctx, key, net.JoinHostPort(host, "0"))
	if err != nil {
		return err
	}
	return l.Close()
}

// listenError says what can be done about an address of key that cannot be had over
// tcp, or udp.
func listenError(network, key, address string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("listen: %w: %s name another port with --%s", err, holder(network, address), key)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("listen: %w: ports below 1024 take root or CAP_NET_BIND_SERVICE; name a higher one with --%s, or let the service manager open it", err, key)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("listen: %w: this host has no such address", err)
	}
	return fmt.Errorf("listen: %w", err)
}

func (x *listener) serve(s *nfsserver.Server) error {
	switch {
	case x.l != nil && x.portmap:
		return s.ServePortmap(&entrance{x.l, x.open})
	case x.l != nil:
		return s.Serve(&entrance{x.l, x.open})
	case x.portmap:
		return s.ServePortmapPacket(&packetEntrance{x.pc, x.open})
	}
	return s.ServePacket(&packetEntrance{x.pc, x.open})
}

// entrance calls open when the server begins to accept.
type entrance struct {
	net.Listener
	open func()
}

func (e *entrance) Accept() (net.Conn, error) {
	e.open()
	return e.Listener.Accept()
}

// packetEntrance is the same for datagrams.
type packetEntrance struct {
	net.PacketConn
	open func()
}

func (e *packetEntrance) ReadFrom(p []byte) (int, net.Addr, error) {
	e.open()
	return e.PacketConn.ReadFrom(p)
}
