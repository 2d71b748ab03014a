package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

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
	l, err := listenTCP(ctx, key, address)
	if err != nil {
		return err
	}
	d.doors = append(d.doors, door{l: l, portmap: portmap})
	if !udp {
		return nil
	}
	var lc net.ListenConfig
	pc, err := lc.ListenPacket(ctx, family("udp", address), l.Addr().String())
	if err != nil {
		return listenError("udp", key, l.Addr().String(), err)
	}
	d.doors = append(d.doors, door{pc: pc, portmap: portmap})
	return nil
}

// onlyKnown reports whether clients are those of this host alone, and the kernel
// knows who they are.
func (d *daemon) onlyKnown() bool { return d.users != nil && d.onLoopback() }

// onLoopback reports whether only this host can reach the doors.
func (d *daemon) onLoopback() bool {
	return !slices.ContainsFunc(d.doors, func(x door) bool { return !config.OnLoopback(x.addr().String()) })
}
