package v3suite

import (
	"encoding/binary"
	"errors"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/xdr"
)

// Arguments that the generated types cannot make, and answers that they do not
// expect.

// nothing is void, in either direction.
type nothing struct{}

func (nothing) AppendXDR(b []byte) ([]byte, error) { return b, nil }
func (nothing) DecodeXDR(*xdr.Decoder) error       { return nil }

// literal is arguments as they go over the wire.
type literal []byte

func (l literal) AppendXDR(b []byte) ([]byte, error) { return append(b, l...), nil }

func words(all ...uint32) literal {
	var b literal
	for _, w := range all {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

// wireHandle is an nfs_fh3, or any opaque or string.
func wireHandle(h handle) literal { return xdr.AppendOpaque(nil, h) }

// raw makes a call; accepted says that the server took it for one, and answer what
// else it answered. A call without any answer ends the test.
func (e *env) raw(p *xdr.Proc, args xdr.Appender, res xdr.Unmarshaler) (accepted bool, answer error) {
	e.last = procName(p)
	reply, err := e.nfs.Call(e.ctx, p, e.auth, args, res)
	e.keep = append(e.keep, reply)
	if err == nil {
		return true, nil
	}
	var refusal *oncrpc.AcceptError
	var denial *oncrpc.DeniedError
	if !errors.As(err, &refusal) && !errors.As(err, &denial) {
		e.Fatalf("%s: %v", e.last, err)
	}
	return false, err
}

func garbage(err error) bool {
	var refusal *oncrpc.AcceptError
	return errors.As(err, &refusal) && refusal.Stat == oncrpc.GarbageArgs
}
