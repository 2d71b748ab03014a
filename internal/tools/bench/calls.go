package bench

import (
	"context"
	"sync"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// nullVerb is the procedure that does nothing: what the wire and RPC cost.
var nullVerb = verb{name: "null", count: 100_000, batch: true, start: calling(null), calls: [2][]string{{"NULL"}}}

func null(m *mount) func(context.Context) error {
	raw := m.client.Raw()
	return func(ctx context.Context) error {
		reply, err := raw.RPC.Call(ctx, nfs3.NFSPROC3_NULL, raw.Auth, xdr.Void{}, xdr.Void{})
		reply.Release()
		return err
	}
}

// getattrVerb asks for the attributes of what the URL names.
var getattrVerb = verb{name: "getattr", count: 100_000, batch: true, start: calling(getattr), calls: [2][]string{{"GETATTR"}}}

func getattr(m *mount) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := m.fs.GetAttr(ctx, m.target.Handle, vfs.MaskV3)
		return err
	}
}

// callWork makes one call again and again.
type callWork struct {
	*mount
	call func(context.Context) error
}

func calling(call func(*mount) func(context.Context) error) func(context.Context, *Options) (work, error) {
	return func(ctx context.Context, o *Options) (work, error) {
		m, err := dial(ctx, o)
		if err != nil {
			return nil, err
		}
		return &callWork{m, call(m)}, nil
	}
}

func (w *callWork) caller(context.Context, int) (caller, error) {
	return inBatches(&callCaller{call: w.call}, w.o.Batch), nil
}

type callCaller struct {
	plain
	call func(context.Context) error
}

func (c *callCaller) op(ctx context.Context) (moved, error) { return moved{}, c.call(ctx) }

// batch is a caller that makes n calls at once and waits for all of them.
type batch struct {
	caller
	n int
}

// inBatches makes c a caller of n calls at once.
func inBatches(c caller, n int) caller {
	if n == 1 {
		return c
	}
	return &batch{c, n}
}

func (b *batch) op(ctx context.Context) (moved, error) {
	errs := make([]error, b.n)
	var calls sync.WaitGroup
	for i := range errs {
		calls.Go(func() { _, errs[i] = b.caller.op(ctx) })
	}
	calls.Wait()
	var failed batchError
	for _, err := range errs {
		if err != nil {
			failed = append(failed, err)
		}
	}
	m := moved{calls: b.n - len(failed)}
	if len(failed) == 0 {
		return m, nil
	}
	return m, failed
}
