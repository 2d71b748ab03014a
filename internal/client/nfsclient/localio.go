package nfsclient

import (
	"context"
	"errors"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/xdr"
)

// probeTime bounds a question of the LOCALIO program, with waiting for a connection and second
// tries, however patient other calls are. At the bound it has failed, and files are used over the
// network.
const probeTime = 5 * time.Second

// maxHangUps is how often in a row the server may close the connection instead of answering such a
// question. At the bound it is not asked any more, and the error is errHangsUp. A restarting server
// closes one or two.
const maxHangUps = 3

var errHangsUp = errors.New("the server hangs up when it is asked")

// ServerUUID asks the server for its UUID, by the first proposal of LOCALIO. A server without it
// answers with an [oncrpc.AcceptError]: PROG_UNAVAIL if it lacks the program, GARBAGE_ARGS if it
// has Linux' form.
func (c *Conn) ServerUUID(ctx context.Context) ([16]byte, error) {
	var res localio.GETUUIDres
	err := c.probe(ctx, localio.LOCALIOPROC_GETUUID, xdr.Void{}, &res)
	return res.Uuid, err
}

// OfferNonce sends the server a nonce, like UUID_IS_LOCAL. Success means nothing: a server that
// does not know the nonce answers the same.
func (c *Conn) OfferNonce(ctx context.Context, nonce [16]byte) error {
	return c.probe(ctx, localio.LOCALIOPROC_UUID_IS_LOCAL, &localio.UUID_IS_LOCALargs{Uuid: nonce}, xdr.Void{})
}

// probe calls a procedure as the file system's caller, so that the server checks the same
// credential and address as in any other call. It makes one try: a server that hangs up on unknown
// programs breaks all other calls on the connection, too.
func (c *Conn) probe(ctx context.Context, p *xdr.Proc, args xdr.Appender, res xdr.Unmarshaler) error {
	if c.hangUps.Load() >= maxHangUps {
		return errHangsUp
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	reply, err := c.rpc.CallOnce(ctx, p, c.fs.Auth, args, res)
	reply.Release()
	_, answered := errors.AsType[*oncrpc.AcceptError](err)
	switch {
	case err == nil || answered:
		c.hangUps.Store(0)
	case errors.Is(err, oncrpc.ErrUnknownOutcome) && !errors.Is(err, oncrpc.ErrTimeout) && ctx.Err() == nil:
		c.hangUps.Add(1)
	}
	return err
}
