package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

func (d *daemon) closeListeners() error { return closeAll(d.listeners) }

// listen takes over the sockets of the service manager or, if there are none, listens at
// the addresses of the configuration. The first socket serves all programs.
func (d *daemon) listen(ctx context.Context) (err error) {
	if d.listeners, err = d.w.Manager.inherited(); err != nil {
		return err
	}
	d.inheritAPI()
	if len(d.listeners) > 0 {
		d.log.Info("the service manager has opened the listeners", slog.Int("sockets", len(d.listeners)))
		// The first one is a listener for all programs: its URL is printed.
		i := slices.IndexFunc(d.listeners, func(x listener) bool { return x.l != nil && !x.portmap })
		if i < 0 {
			return errors.New("the service manager has opened no socket of TCP, other than the port mapper's")
		}
		d.listeners[0], d.listeners[i] = d.listeners[i], d.listeners[0]
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
	l, err := listenTCP(ctx, key, address)
	if err != nil {
		return err
	}
	d.listeners = append(d.listeners, listener{l: l, portmap: portmap})
	if !udp {
		return nil
	}
	var lc net.ListenConfig
	pc, err := lc.ListenPacket(ctx, family("udp", address), l.Addr().String())
	if err != nil {
		return listenError("udp", key, l.Addr().String(), err)
	}
	d.listeners = append(d.listeners, listener{pc: pc, portmap: portmap})
	return nil
}

// onlyKnown reports whether all clients are on this host, and the kernel reports their
// users.
func (d *daemon) onlyKnown() bool { return d.users != nil && d.onLoopback() }

// onLoopback reports whether only this host can reach the listeners.
func (d *daemon) onLoopback() bool {
	return !slices.ContainsFunc(d.listeners, func(x listener) bool { return !config.OnLoopback(x.addr().String()) })
}
