package v3

import (
	"context"
	"log/slog"
	"sync"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/nfsserver/internal/peer"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// request is what a procedure works with, beside its arguments and result.
type request struct {
	srv  *Service
	conn *peer.Conn
	view *peer.View
	fs   vfs.FS // view.FS

	// bulk, if a procedure sets it and succeeds, holds the bytes that its
	// result sends as an xdr.BulkArgs.
	bulk *bulk

	// What results borrow from, or file systems are lent.
	h       vfs.Handle
	attr    vfs.Attr
	open    vfs.OpenHow
	file    export.File // of reopen
	written vfs.Written
	create  vfs.CreateHow
}

// frame is the memory of one call.
type frame[A, R any] struct {
	request
	args A
	res  R
}

// decoded is a pointer to arguments.
type decoded[A any] interface {
	*A
	xdr.Unmarshaler
}

// result is a pointer to a result: every one begins with a status.
type result[R any] interface {
	*R
	xdr.Appender
	Stat() *nfs3.Nfsstat3
}

// handler makes an oncrpc.Handler of a procedure. The procedure's error becomes the
// status of the result, whose arm for failures it may have filled.
func handler[A, R any, PA decoded[A], PR result[R]](s *Service, do func(context.Context, *request, *A, *R) error) oncrpc.Handler {
	frames := sync.Pool{New: func() any { return new(frame[A, R]) }}
	return func(ctx context.Context, c *oncrpc.Call) error {
		f := frames.Get().(*frame[A, R])
		defer func() {
			if f.bulk != nil {
				f.bulk.Release()
			}
			*f = frame[A, R]{}
			frames.Put(f)
		}()
		if err := f.begin(s, c, PA(&f.args)); err != nil {
			return err
		}
		err := do(ctx, &f.request, &f.args, &f.res)
		if err != nil && ctx.Err() != nil {
			// The client does not wait any more, and no status would be true of a
			// call that was cut off.
			return oncrpc.ErrDrop
		}
		st := s.status(c, err)
		switch st {
		case nfs3.NFS3ERR_JUKEBOX, nfs3.NFS3ERR_STALE, nfs3.NFS3ERR_BADHANDLE:
			// A call that is told to try again must be executed again. And a call with
			// a bad handle has changed nothing: such calls must not fill the reply cache.
			c.Forget()
		}
		*PR(&f.res).Stat() = st
		if res, ok := any(&f.res).(xdr.BulkArgs); ok && err == nil && f.bulk != nil {
			owner := f.bulk
			f.bulk = nil
			return c.ReplyBulk(res, owner)
		}
		return c.Reply(PR(&f.res))
	}
}

// begin decodes the arguments and finds the caller.
func (q *request) begin(s *Service, c *oncrpc.Call, args xdr.Unmarshaler) error {
	s.calls[c.Proc.Number].Add(1)
	if err := args.DecodeXDR(&c.Args); err != nil {
		return err
	}
	if err := c.Args.Finish(); err != nil {
		return err
	}
	conn := c.State.(*peer.Conn)
	view, err := conn.View(c.Auth)
	if err != nil {
		return err
	}
	q.srv, q.conn, q.view, q.fs = s, conn, view, view.FS
	return nil
}

// status is err on the wire. An error without a status is unexpected, and is logged, since
// the client gets only SERVERFAULT.
func (s *Service) status(c *oncrpc.Call, err error) nfs3.Nfsstat3 {
	if err == nil {
		return nfs3.NFS3_OK
	}
	s.errors.Add(1)
	st, ok := nfs3.StatusOf(err)
	if !ok {
		s.log.Warn("the file system failed", slog.String("procedure", c.Proc.Name),
			slog.Any("client", c.Remote), slog.Any("error", err))
	}
	return st
}

// post fills p with the attributes of h: those in a if they came, else it asks for them.
// If that fails, p has none, which the protocol allows.
func (q *request) post(ctx context.Context, h vfs.Handle, a *vfs.Attr, p *nfs3.PostOpAttr) {
	if !a.Has(nfs3.Sent) {
		got, err := q.fs.GetAttr(ctx, h, vfs.MaskV3)
		if err != nil {
			return
		}
		p.SetAttr(&got)
		return
	}
	p.SetAttr(a)
}

// wcc fills w with the attributes of h, an object that the procedure has changed or tried
// to change.
func (q *request) wcc(ctx context.Context, h vfs.Handle, v *vfs.WCC, w *nfs3.WccData) {
	if v.After.Has(nfs3.Sent) {
		w.SetWCC(v)
		return
	}
	q.post(ctx, h, &v.After, &w.After)
}

// dirop is the directory and the name of a diropargs3.
func dirop(a *nfs3.Diropargs3) (dir vfs.Handle, name string, err error) {
	dir, err = a.Dir.VFS()
	return dir, string(a.Name), err
}
