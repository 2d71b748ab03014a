package nfsbox

import (
	"context"
	"errors"
	"io/fs"

	"github.com/nfsbox/nfsbox/internal/client/localio"
	"github.com/nfsbox/nfsbox/internal/client/nfsclient"
	"github.com/nfsbox/nfsbox/internal/client/writeback"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
)

// Client is an open connection to a server. All methods but Close may be called
// concurrently.
type Client struct {
	conn  *nfsclient.Conn
	local *localio.FS // nil: switched off
	fs    *writeback.FS

	stop    context.Context // of WithStop; nil: none
	unwatch func() bool     // stops waiting for its end
	closed  context.CancelFunc
	closeFS func() error // once
}

// FS is the file system below the URL's directory: of a URL that names a file, or nothing,
// the directory that holds it, with the name in Target. Its root is then not what the URL
// names. A caller that means a directory, to read, change or remove all that is in it,
// takes Tree, which refuses such a URL. It is valid until Close.
func (c *Client) FS() vfs.FS { return c.fs }

// Target is the name of what the URL names, in FS's root, where it need not
// exist; "" is the root itself. It may be a symbolic link that leads out of the root, where
// FS alone stays at the root and finds another object. A program that follows it gives
// vfs.Resolve the FS that vfs.Inside returns, which makes that vfs.ErrOutside; package iofs
// refuses such a link by itself.
func (c *Client) Target() string { return c.conn.Target() }

// Tree is the directory that the URL names, for everything in Go that reads files; ctx ends
// every call of it. It is iofs.Root of FS where the URL names a directory. If the URL names
// nothing, the error Is fs.ErrNotExist, and if it names anything else, symbolic links
// included, syscall.ENOTDIR: what lies beside it is in FS, and not in a tree by mistake. A
// slash at the end of the URL has a link followed.
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

// Found is what the URL names, as the server said when it was dialled: a caller who wants
// to know at once is spared the calls. Fields of the attributes may be missing. The error
// Is fs.ErrNotExist if the URL names nothing.
func (c *Client) Found() (vfs.Resolved, error) { return c.conn.Found() }

// Raw is the way to the server below the file system, for a program that calls
// procedures of the protocol itself: those of package proto/nfs3, and of other
// programs that the server has at the same port. Calls go over the client's own
// connections, and are neither limited nor judged.
type Raw struct {
	RPC  *oncrpc.Client // the Client's, which closes it
	Auth oncrpc.Auth    // the credential of the client's caller
	Root vfs.Handle     // of the directory that FS is rooted at
}

// Raw returns the way to the server. It is valid until Close.
func (c *Client) Raw() Raw {
	rpc, auth := c.conn.Raw()
	return Raw{RPC: rpc, Auth: auth, Root: c.conn.Root()}
}

// Close ends the client. Files are to be closed before: what they have not made
// stable is lost, as it would be in a crash, and the error says how much that is.
// The server is told, if it answers within two seconds.
func (c *Client) Close() error {
	err := c.closeFS() // and with it what is below
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
