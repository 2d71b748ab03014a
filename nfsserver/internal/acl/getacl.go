package acl

import (
	"context"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfsacl3"
	"github.com/nfsbox/nfsbox/vfs"
)

// allMasks are the bits that the protocol knows. Others are vfs.ErrInval.
const allMasks = nfsacl3.NA_ACL | nfsacl3.NA_ACLCNT | nfsacl3.NA_DFACL | nfsacl3.NA_DFACLCNT

func (s *Service) getacl(ctx context.Context, c *oncrpc.Call) error {
	var args nfsacl3.GETACL3args
	fs, err := s.begin(c, &args)
	if err != nil {
		return err
	}
	var res nfsacl3.GETACL3res
	err = get(ctx, fs, &args, &res)
	return s.reply(ctx, c, &res, &res.Status, err)
}

func get(ctx context.Context, fs vfs.FS, args *nfsacl3.GETACL3args, res *nfsacl3.GETACL3res) error {
	h, err := vfs.MakeHandle(args.Fh.Data)
	if err != nil {
		return err
	}
	acl, err := lists(ctx, fs, h, args.Mask)
	if err != nil {
		post(ctx, fs, h, &res.Resfail.Attr)
		return err
	}
	a := post(ctx, fs, h, &res.Resok.Attr)
	toWire(&res.Resok.Acl, args.Mask, &acl, &a)
	return nil
}

// lists reads the lists, if the mask asks for any of it.
func lists(ctx context.Context, fs vfs.FS, h vfs.Handle, mask uint32) (vfs.ACL, error) {
	if mask&^allMasks != 0 {
		return vfs.ACL{}, vfs.ErrInval
	}
	p, err := power(fs)
	if err != nil {
		return vfs.ACL{}, err
	}
	return p.ACL(ctx, h)
}
