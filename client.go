package nfsbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/nfsbox/nfsbox/internal/client/attrcache"
	"github.com/nfsbox/nfsbox/internal/client/cache"
	"github.com/nfsbox/nfsbox/internal/client/localio"
	"github.com/nfsbox/nfsbox/internal/client/nfsclient"
	"github.com/nfsbox/nfsbox/internal/client/nfsclient/nlm"
	"github.com/nfsbox/nfsbox/internal/client/pace"
	"github.com/nfsbox/nfsbox/internal/client/readahead"
	"github.com/nfsbox/nfsbox/internal/client/writeback"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
)

// Client is an open connection to a server. All methods but Close may be called
// concurrently.
type Client struct {
	conn   *nfsclient.Conn
	local  *localio.FS // nil: off
	locks  *nlm.FS
	cache  *cache.FS // nil: none
	direct vfs.FS    // what ahead is over
	ahead  *readahead.FS
	attrs  *attrcache.FS // nil: nothing is kept
	fs     *writeback.FS // over ahead, or over what keeps attributes

	pace    *pace.Limiter
	stop    context.Context // of WithStop; nil: none
	unwatch func() bool     // stops waiting for its end
	closed  context.CancelFunc
	closeFS func() error // once
}

// SetMaxLoad changes what WithMaxLoad has set: n calls of each class in flight, from 1 to 512; 0 finds
// out anew what is best. It holds for calls that wait, too; those in flight are not taken back.
func (c *Client) SetMaxLoad(n int) error {
	if n < 0 || n > maxLoad {
		return fmt.Errorf("nfs: %d calls at once, from 1 to %d allowed", n, maxLoad)
	}
	c.pace.SetMax(n)
	return nil
}

// FS is the file system below the URL's directory. If the URL names a file, or nothing, it is
// rooted at the directory above, and Target has the name in it: the root is not what the URL
// names. A caller that means a directory, to read, change or remove everything in it, uses
// Tree, which refuses such a URL. FS is valid until Close.
func (c *Client) FS() vfs.FS { return c.fs }

// Target is the name of the URL's object in FS's root, where it need not exist; "" is the root
// itself. It may be a symbolic link that leads out of the root. FS alone stays within the root,
// and would find another object. A program that follows the link gives vfs.Resolve the FS that
// vfs.Inside returns, which makes that vfs.ErrOutside. Package iofs refuses such links itself.
func (c *Client) Target() string { return c.conn.Target() }

// Tree is the directory that the URL names, as an iofs.FS rooted there. ctx ends every call of
// it. If the URL names nothing, the error Is fs.ErrNotExist; if it names something other than
// a directory, symbolic links included, the error Is syscall.ENOTDIR. So a mistaken URL never
// exposes the directory above. A slash at the end of the URL has a link followed.
func (c *Client) Tree(ctx context.Context) (*iofs.FS, error) {
	name := c.Target()
	if name == "" {
		return iofs.Root(ctx, c.FS())
	}
	if _, err := c.Found(); err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: vfs.ErrNotDir}
}

// Found is the object that the URL names, as Dial has found it: it saves the caller a look-up
// right after Dial. Attributes may be incomplete. The error Is fs.ErrNotExist if the URL names
// nothing.
func (c *Client) Found() (vfs.Resolved, error) { return c.conn.Found() }

// Raw is the connection below the file system, for programs that call procedures themselves:
// those of package proto/nfs3, and of other programs at the server's port. The calls use the
// client's own connections. They bypass the limiter, and their statuses are not interpreted.
type Raw struct {
	RPC  *oncrpc.Client // the Client's, which closes it
	Auth oncrpc.Auth    // the credential of the client's caller
	Root vfs.Handle     // of the directory that FS is rooted at
}

// Raw returns the connection. It is valid until Close.
func (c *Client) Raw() Raw {
	rpc, auth := c.conn.Raw()
	return Raw{RPC: rpc, Auth: auth, Root: c.conn.Root()}
}

// Close ends the client. Files must be closed before: what they have not made stable is lost,
// as in a crash, and the error says how many bytes. The server is told to unmount; Close waits
// two seconds at most for its answer.
func (c *Client) Close() error {
	err := c.closeFS() // closes the layers below, too
	if c.stop == nil {
		return errors.Join(err, c.conn.Close())
	}
	c.unwatch()
	c.closed()
	if c.stop.Err() != nil {
		return errors.Join(err, c.conn.Leave())
	}
	return errors.Join(err, c.conn.Close())
}
