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

// door is where clients come in: a listener, or a socket of datagrams.
type door struct {
	l       net.Listener
	pc      net.PacketConn
	portmap bool   // clients ask for the port mapper there, and go to others
	open    func() // called when the server has begun to let clients in
}

func (x *door) addr() net.Addr {
	if x.l != nil {
		return x.l.Addr()
	}
	return x.pc.LocalAddr()
}

func (x *door) close() error {
	if x.l != nil {
		return x.l.Close()
	}
	return x.pc.Close()
}

// closeAll closes doors, also those that the server has closed.
func closeAll(doors []door) (err error) {
	for i := range doors {
		if e := doors[i].close(); !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// family is network for an address that is listened at. Where that is one of IPv4, also
// 0.0.0.0, nobody comes in over IPv6, as they do where no address is named.
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

// listenTCP listens at an address of key, a key of the configuration.
func listenTCP(ctx context.Context, key, address string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, family("tcp", address), address)
	if err != nil {
		return nil, listenError("tcp", key, address, err)
	}
	return l, nil
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

// serve answers those who come in by a door.
func (x *door) serve(s *nfsserver.Server) error {
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

// entrance is a listener that says when the server has begun to accept.
type entrance struct {
	net.Listener
	open func()
}

// Accept implements net.Listener.
func (e *entrance) Accept() (net.Conn, error) {
	e.open()
	return e.Listener.Accept()
}

// packetEntrance is an entrance for datagrams.
type packetEntrance struct {
	net.PacketConn
	open func()
}

// ReadFrom implements net.PacketConn.
func (e *packetEntrance) ReadFrom(p []byte) (int, net.Addr, error) {
	e.open()
	return e.PacketConn.ReadFrom(p)
}
