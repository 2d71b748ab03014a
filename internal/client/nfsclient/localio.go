package nfsclient

import (
	"context"
	"errors"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/xdr"
)

// probeTime bounds a question of the LOCALIO program, waiting for a connection
// and second tries included, however patient or hard other calls are. Beyond it
// the question has failed; the files are used over the network meanwhile.
const probeTime = 5 * time.Second

// maxHangUps is how often in a row the server may end the connection instead of
// answering such a question. Then it is not asked any more, and errHangsUp is the
// answer. A server that was being restarted ends one or two.
const maxHangUps = 3

var errHangsUp = errors.New("the server hangs up when it is asked")

// ServerUUID asks the server for its UUID, in the form of LOCALIO that was first
// proposed. A server that does not have it answers with an [oncrpc.AcceptError]:
// PROG_UNAVAIL one without the program, GARBAGE_ARGS one with the form of Linux.
func (c *Conn) ServerUUID(ctx context.Context) ([16]byte, error) {
	var res localio.GETUUIDres
	err := c.probe(ctx, localio.LOCALIOPROC_GETUUID, xdr.Void{}, &res)
	return res.Uuid, err
}

// OfferNonce shows the server a nonce, as UUID_IS_LOCAL does. That it succeeds
// means nothing: a server that has never heard of the nonce says the same.
func (c *Conn) OfferNonce(ctx context.Context, nonce [16]byte) error {
	return c.probe(ctx, localio.LOCALIOPROC_UUID_IS_LOCAL, &localio.UUID_IS_LOCALargs{Uuid: nonce}, xdr.Void{})
}

// probe calls a procedure as the caller of the file system, so that the server
// judges the same credential and address as in any other call. It does so once: a
// server that hangs up on programs which it does not know does so on all other calls
// of the connection as well.
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
