package daemon

import (
	"log/slog"
	"net"
	"os"

	"github.com/nfsbox/nfsbox/internal/server/sockdiag"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
)

// findUsers finds out whether the kernel reports the users of connections from this host.
func (d *daemon) findUsers() {
	if err := sockdiag.Works(); err != nil {
		d.log.Warn("whose the connections from this host are cannot be told here: its users are believed to be who they say, but for root",
			slog.Any("why", err))
		return
	}
	d.users = d.user
}

// user is the user of a connection from this host, for nfsserver.Options; nil is one that
// is believed. Root is, since it can be every user, and so is the server's own user, since
// it has all that the server has.
func (d *daemon) user(nc net.Conn) *uint32 {
	uid, err := sockdiag.Owner(nc)
	switch {
	case err != nil:
		d.log.Debug("a connection from this host is nobody's", slog.Any("client", nc.RemoteAddr()), slog.Any("why", err))
		uid = oncrpc.UnknownUser
	case uid == 0, int64(uid) == int64(os.Geteuid()):
		return nil
	}
	return &uid
}

// client names the client of a connection: a user of this host, or an address.
func (d *daemon) client(nc net.Conn) string {
	return oncrpc.ShareOf(nfsserver.PeerOf(d.users, nc, nc.RemoteAddr(), nc.LocalAddr()))
}
