package bench

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// getattrVerb asks for the attributes of what the URL names.
var getattrVerb = verb{name: "getattr", count: 100_000, batch: true, start: startGetattr, calls: [2][]string{{"GETATTR"}}}

type getattrWork struct{ *mount }

func startGetattr(ctx context.Context, o *Options) (work, error) {
	m, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	return &getattrWork{m}, nil
}

func (w *getattrWork) caller(context.Context, int) (caller, error) {
	return inBatches(&getattrCaller{fs: w.fs, h: w.target.Handle}, w.o.Batch), nil
}

type getattrCaller struct {
	plain
	fs vfs.FS
	h  vfs.Handle
}

func (c *getattrCaller) op(ctx context.Context) (moved, error) {
	_, err := c.fs.GetAttr(ctx, c.h, vfs.MaskV3)
	return moved{}, err
}
