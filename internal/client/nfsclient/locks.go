package nfsclient

import (
	"context"
	"errors"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/nlm"
	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
)

// Locks says how package nlm finds the server's lock manager: at [Options.LockPort], at Options.Port
// or NFSPort, or where the portmapper says. Its calls have the credentials of the file system's.
func (c *Conn) Locks() nlm.Options {
	return nlm.Options{Connect: c.lockManager, Auth: c.credential, Server: c.opt.Host, Host: c.opt.FS.Machine, Rand: c.opt.Rand, Log: c.opt.Log}
}

func (c *Conn) lockManager(ctx context.Context, dialed func()) (*oncrpc.Client, error) {
	s := lockService
	s.dialed = dialed
	rpc, _, err := c.opt.connect(ctx, &s)
	return rpc, err
}

func (c *Conn) credential(who *vfs.Caller) (oncrpc.Auth, error) {
	view, ok := c.fs.As(who).(*v3.FS)
	if !ok {
		return oncrpc.Auth{}, errors.ErrUnsupported
	}
	return view.Auth, nil
}
