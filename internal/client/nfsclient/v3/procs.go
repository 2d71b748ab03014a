package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

// Procs are the procedures of NFSv3, as one caller calls them. Each method makes
// one call; results borrow from the Reply, which the caller releases. An error
// status is part of the result and no error here. All methods may be called
// concurrently. See [oncrpc.Client.Call] for errors.
type Procs struct {
	RPC  *oncrpc.Client
	Auth oncrpc.Auth
}

func (p *Procs) call(ctx context.Context, proc *xdr.Proc, args xdr.Appender, res xdr.Unmarshaler) (oncrpc.Reply, error) {
	return p.RPC.Call(ctx, proc, p.Auth, args, res)
}

// Null does nothing: it tells whether the server is there and speaks NFSv3 (RFC
// 1813, section 3.3.0).
func (p *Procs) Null(ctx context.Context) error {
	reply, err := p.call(ctx, nfs3.NFSPROC3_NULL, xdr.Void{}, xdr.Void{})
	reply.Release()
	return err
}
