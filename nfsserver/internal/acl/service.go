package acl

import (
	"context"
	"log/slog"

	"github.com/nfsbox/nfsbox/nfsserver/internal/peer"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/nfsacl3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// Service is NFSACL. Whose exports it serves is in the state of each connection, a
// [*peer.Conn].
type Service struct {
	log *slog.Logger
}

// New returns the service; [Service.RPC] is what a server runs of it.
func New(log *slog.Logger) *Service { return &Service{log: log} }

// RPC binds the procedures to their numbers. A SETACL is executed once: sent
// again after another client's, it would undo that.
func (s *Service) RPC() oncrpc.Service {
	h := make([]oncrpc.Handler, len(nfsacl3.NFS_ACL_V3.Procs))
	once := make([]bool, len(h))
	h[nfsacl3.ACLPROC3_NULL.Number] = s.null
	h[nfsacl3.ACLPROC3_GETACL.Number] = s.getacl
	h[nfsacl3.ACLPROC3_SETACL.Number] = s.setacl
	once[nfsacl3.ACLPROC3_SETACL.Number] = true
	return oncrpc.Service{Program: &nfsacl3.NFS_ACL_V3, Handlers: h, Once: once}
}

func (s *Service) null(_ context.Context, c *oncrpc.Call) error {
	return c.Reply(xdr.Void{})
}

// begin decodes the arguments and finds what the caller sees.
func (s *Service) begin(c *oncrpc.Call, args xdr.Unmarshaler) (vfs.FS, error) {
	if err := args.DecodeXDR(&c.Args); err != nil {
		return nil, err
	}
	if err := c.Args.Finish(); err != nil {
		return nil, err
	}
	view, err := c.State.(*peer.Conn).View(c.Auth)
	if err != nil {
		return nil, err
	}
	return view.FS, nil
}

// reply sends res, whose status becomes what err says.
func (s *Service) reply(ctx context.Context, c *oncrpc.Call, res xdr.Appender, status *nfsacl3.Nfsstat3, err error) error {
	if err != nil && ctx.Err() != nil {
		return oncrpc.ErrDrop // the client does not wait any more
	}
	if err != nil {
		st, known := nfs3.StatusOf(err)
		if !known {
			s.log.Warn("the file system failed", slog.String("procedure", c.Proc.Name),
				slog.Any("client", c.Remote), slog.Any("error", err))
		}
		*status = nfsacl3.Nfsstat3(st)
	}
	return c.Reply(res)
}

// power is what fs can do with lists.
func power(fs vfs.FS) (vfs.ACLer, error) {
	p, ok := vfs.As[vfs.ACLer](fs)
	if !ok {
		return nil, vfs.ErrNotSupp
	}
	return p, nil
}

// post fills p with the attributes of h and returns them. If asking fails, p has none,
// which the protocol allows.
func post(ctx context.Context, fs vfs.FS, h vfs.Handle, p *nfsacl3.PostOpAttr) vfs.Attr {
	a, err := fs.GetAttr(ctx, h, vfs.MaskV3)
	if err != nil {
		return vfs.Attr{}
	}
	var sent nfs3.PostOpAttr
	sent.SetAttr(&a)
	f := &sent.Attributes
	p.AttributesFollow = sent.AttributesFollow
	p.Attributes = nfsacl3.Fattr3{
		Type: nfsacl3.Ftype3(f.Type), Mode: f.Mode, Nlink: f.Nlink, Uid: f.Uid, Gid: f.Gid,
		Size: f.Size, Used: f.Used, Rdev: nfsacl3.Specdata3(f.Rdev), Fsid: f.Fsid, Fileid: f.Fileid,
		Atime: nfsacl3.Nfstime3(f.Atime), Mtime: nfsacl3.Nfstime3(f.Mtime), Ctime: nfsacl3.Nfstime3(f.Ctime),
	}
	return a
}
