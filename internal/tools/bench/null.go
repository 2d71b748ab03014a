package bench

import (
	"context"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

// nullVerb is the procedure that does nothing: what the wire and RPC cost.
var nullVerb = verb{name: "null", count: 100_000, batch: true, start: startNull, calls: [2][]string{{"NULL"}}}

type nullWork struct{ *mount }

func startNull(ctx context.Context, o *Options) (work, error) {
	m, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	return &nullWork{m}, nil
}

func (w *nullWork) caller(context.Context, int) (caller, error) {
	return inBatches(&nullCaller{raw: w.client.Raw()}, w.o.Batch), nil
}

type nullCaller struct {
	plain
	raw nfsbox.Raw
}

func (c *nullCaller) op(ctx context.Context) (moved, error) {
	reply, err := c.raw.RPC.Call(ctx, nfs3.NFSPROC3_NULL, c.raw.Auth, xdr.Void{}, xdr.Void{})
	reply.Release()
	return moved{}, err
}
