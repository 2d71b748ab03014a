package bench

import (
	"context"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// A batch is many calls that one caller makes together and waits for: what C
// libraries with an event loop do, without a goroutine for each call.

// nullBatch makes so many calls of NULL together.
type nullBatch struct {
	plain
	raw   nfsbox.Raw
	calls []oncrpc.Exchange
}

func newNullBatch(raw nfsbox.Raw, n int) *nullBatch {
	c := &nullBatch{raw: raw, calls: make([]oncrpc.Exchange, n)}
	for i := range c.calls {
		c.calls[i] = oncrpc.Exchange{Proc: nfs3.NFSPROC3_NULL, Auth: raw.Auth, Args: xdr.Void{}, Res: xdr.Void{}}
	}
	return c
}

func (c *nullBatch) op(ctx context.Context) (moved, error) {
	c.raw.RPC.CallMany(ctx, c.calls)
	var failed batchError
	for i := range c.calls {
		x := &c.calls[i]
		if x.Err != nil {
			failed = append(failed, x.Err)
			continue
		}
		x.Reply.Release()
		x.Reply = oncrpc.Reply{}
	}
	return failed.outOf(len(c.calls))
}

// getattrBatch asks so many times together for the attributes of one object.
type getattrBatch struct {
	plain
	fs    vfs.FS
	hs    []vfs.Handle
	attrs []vfs.Attr
	errs  []error
}

func newGetattrBatch(fs vfs.FS, h vfs.Handle, n int) *getattrBatch {
	c := &getattrBatch{fs: fs, hs: make([]vfs.Handle, n), attrs: make([]vfs.Attr, n), errs: make([]error, n)}
	for i := range c.hs {
		c.hs[i] = h
	}
	return c
}

func (c *getattrBatch) op(ctx context.Context) (moved, error) {
	vfs.GetAttrs(ctx, c.fs, c.hs, vfs.MaskV3, c.attrs, c.errs)
	var failed batchError
	for _, err := range c.errs {
		if err != nil {
			failed = append(failed, err)
		}
	}
	return failed.outOf(len(c.hs))
}

// outOf is what became of n calls, of which these have failed.
func (e batchError) outOf(n int) (moved, error) {
	m := moved{calls: n - len(e)}
	if len(e) == 0 {
		return m, nil
	}
	return m, e
}
