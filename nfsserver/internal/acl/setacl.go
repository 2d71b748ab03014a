package acl

import (
	"context"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfsacl3"
	"github.com/nfsbox/nfsbox/vfs"
)

func (s *Service) setacl(ctx context.Context, c *oncrpc.Call) error {
	var args nfsacl3.SETACL3args
	fs, err := s.begin(c, &args)
	if err != nil {
		return err
	}
	var res nfsacl3.SETACL3res
	err = set(ctx, fs, &args, &res)
	return s.reply(ctx, c, &res, &res.Status, err)
}

func set(ctx context.Context, fs vfs.FS, args *nfsacl3.SETACL3args, res *nfsacl3.SETACL3res) error {
	h, err := vfs.MakeHandle(args.Fh.Data)
	if err != nil {
		return err
	}
	if err := replace(ctx, fs, h, &args.Acl); err != nil {
		post(ctx, fs, h, &res.Resfail.Attr)
		return err
	}
	post(ctx, fs, h, &res.Resok.Attr)
	return nil
}

// replace sets the lists that w mentions. If it mentions only one, the other is read
// first; a change of that one by another client at the same time may be lost.
func replace(ctx context.Context, fs vfs.FS, h vfs.Handle, w *nfsacl3.Secattr) error {
	acl, err := fromWire(w)
	if err != nil {
		return err
	}
	p, err := power(fs)
	if err != nil {
		return err
	}
	const both = nfsacl3.NA_ACL | nfsacl3.NA_DFACL
	if w.Mask&both != both {
		now, err := p.ACL(ctx, h)
		if err != nil || w.Mask&both == 0 {
			return err
		}
		if w.Mask&nfsacl3.NA_ACL == 0 {
			acl.Access = now.Access
		} else {
			acl.Default = now.Default
		}
	}
	return p.SetACL(ctx, h, acl)
}
