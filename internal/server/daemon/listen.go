package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"syscall"
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

func (d *daemon) closeDoors() error { return closeAll(d.doors) }

// listen opens the doors: those that the service manager hands over, and else
// those of the configuration. The first one is for all programs.
func (d *daemon) listen(ctx context.Context) (err error) {
	if d.doors, err = d.w.Manager.inherited(); err != nil {
		return err
	}
	d.inheritAPI()
	if len(d.doors) > 0 {
		d.log.Info("the service manager has opened the listeners", slog.Int("sockets", len(d.doors)))
		// The first one is a listener for all programs: its URL is printed.
		i := slices.IndexFunc(d.doors, func(x door) bool { return x.l != nil && !x.portmap })
		if i < 0 {
			return errors.New("the service manager has opened no socket of TCP, other than the port mapper's")
		}
		d.doors[0], d.doors[i] = d.doors[i], d.doors[0]
		return nil
	}
	for _, a := range d.c.Listen {
		if err := d.bind(ctx, "listen", a, d.c.UDP); err != nil {
			return err
		}
	}
	for _, a := range d.c.PortmapListen {
		if err := d.bind(ctx, "portmap-listen", a, true); err != nil {
			return err
		}
	}
	return nil
}

// bind opens one address of those of key, and the same port for datagrams if udp.
func (d *daemon) bind(ctx context.Context, key, address string, udp bool) error {
	portmap := key == "portmap-listen"
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, family("tcp", address), address)
	if err != nil {
		return listenError("tcp", key, address, err)
	}
	d.doors = append(d.doors, door{l: l, portmap: portmap})
	if !udp {
		return nil
	}
	pc, err := lc.ListenPacket(ctx, family("udp", address), l.Addr().String())
	if err != nil {
		return listenError("udp", key, l.Addr().String(), err)
	}
	d.doors = append(d.doors, door{pc: pc, portmap: portmap})
	return nil
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

// somebody has an address, and it is not known who.
const somebody = "another process has it; end it, or"

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

// onlyKnown reports whether clients are those of this host alone, and the kernel
// knows who they are.
func (d *daemon) onlyKnown() bool { return d.users != nil && d.onLoopback() }

// onLoopback reports whether only this host can reach the doors.
func (d *daemon) onLoopback() bool {
	return !slices.ContainsFunc(d.doors, func(x door) bool { return !onLoopback(x.addr().String()) })
}
