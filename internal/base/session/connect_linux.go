package session

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/proto/localio"
)

// network is SOCK_SEQPACKET in package net: a connection that keeps message boundaries and
// reports its end.
const network = "unixpacket"

// Connect connects to the server with this UUID and a socket in the directory path. Without
// such a socket the error is fs.ErrNotExist. If the socket must not be used, it is a
// [*Refused].
func Connect(ctx context.Context, path string, uuid [localio.UUID_SIZE]byte) (*Conn, error) {
	d, err := openDir(path, 0)
	if err != nil {
		return nil, err
	}
	c, err := d.connect(ctx, path, FormatUUID(uuid)+suffix)
	if closed := d.close(); closed != nil && c != nil {
		return nil, errors.Join(closed, c.Close())
	}
	return c, err
}

func (d *dir) connect(ctx context.Context, path, name string) (*Conn, error) {
	var dialer net.Dialer
	nc, err := dialer.DialContext(ctx, network, d.path(name))
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return nil, refused("nobody listens at %s/%s", path, name)
	case errors.Is(err, unix.EACCES):
		return nil, refused("%s/%s is not for this user", path, name)
	case errors.Is(err, unix.EAGAIN):
		return nil, refused("%s/%s has too many clients that wait", path, name)
	case err != nil:
		return nil, fmt.Errorf("localio: %s/%s: %w", path, name, err)
	}
	c, err := newConn(nc.(*net.UnixConn), false)
	if err != nil {
		return nil, err
	}
	if !d.trusts(c.peer.UID, true) {
		return nil, errors.Join(refused("%s/%s is served by uid %d", path, name, c.peer.UID), c.Close())
	}
	return c, nil
}
