package oncrpc

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/xdr"
)

// Constants of the RPC message (RFC 5531, section 9).
const (
	rpcVersion = 2

	msgCall  = 0
	msgReply = 1

	replyAccepted = 0
	replyDenied   = 1
)

// beginRecord makes room for the word before a record of one fragment. endRecord writes
// it, for the record at b[at:], to which bulk more bytes belong that are not in b.
func beginRecord(b []byte) []byte { return append(b, 0, 0, 0, 0) }

func endRecord(b []byte, at, bulk int) error {
	n := len(b) - at - markBytes + bulk
	if int64(n) >= lastFragment {
		return &RecordError{Len: int64(n), Max: lastFragment - 1}
	}
	binary.BigEndian.PutUint32(b[at:], lastFragment|uint32(n))
	return nil
}

// appendCall appends the head of a call, up to its arguments. The verifier is AUTH_NONE, as
// it is for all flavors that we send.
func appendCall(b []byte, xid uint32, p *xdr.Proc, cred *Auth) []byte {
	b = xdr.AppendUint32(b, xid)
	b = xdr.AppendUint32(b, msgCall)
	b = xdr.AppendUint32(b, rpcVersion)
	b = xdr.AppendUint32(b, p.Program)
	b = xdr.AppendUint32(b, p.Version)
	b = xdr.AppendUint32(b, p.Number)
	b = cred.append(b)
	return (&Auth{}).append(b)
}

// appendAccepted appends the head of an accepted reply, up to its results, or with
// ProgMismatch to the versions. Behind other statuses there is nothing.
func appendAccepted(b []byte, xid uint32, verf []byte, stat AcceptStat) []byte {
	b = xdr.AppendUint32(b, xid)
	b = xdr.AppendUint32(b, msgReply)
	b = xdr.AppendUint32(b, replyAccepted)
	b = (&Auth{Body: verf}).append(b)
	return xdr.AppendUint32(b, uint32(stat))
}

// acceptedBytes is the length of appendAccepted's head if the verifier is empty.
const acceptedBytes = 24

// appendError appends the whole reply that err, an [*AcceptError] or a
// [*DeniedError], stands for.
func appendError(b []byte, xid uint32, err error) []byte {
	if e, ok := errors.AsType[*AcceptError](err); ok {
		b = appendAccepted(b, xid, nil, e.Stat)
		if e.Stat == ProgMismatch {
			b = xdr.AppendUint32(b, e.Low)
			b = xdr.AppendUint32(b, e.High)
		}
	}
	if e, ok := errors.AsType[*DeniedError](err); ok {
		b = xdr.AppendUint32(b, xid)
		b = xdr.AppendUint32(b, msgReply)
		b = xdr.AppendUint32(b, replyDenied)
		b = xdr.AppendUint32(b, uint32(e.Stat))
		if e.Stat == RPCMismatch {
			b = xdr.AppendUint32(b, e.Low)
			return xdr.AppendUint32(b, e.High)
		}
		b = xdr.AppendUint32(b, uint32(e.Auth))
	}
	return b
}

// decodeReply consumes the head of a reply behind its xid, up to the results. An error is
// the server's answer, an [*AcceptError] or a [*DeniedError]. Any other says what is wrong
// with this message. The connection can go on, but not after [errNotReply].
func decodeReply(d *xdr.Decoder) (verf Auth, err error) {
	if t := d.Uint32(); d.Err() == nil && t != msgReply {
		return verf, errNotReply
	}
	switch s := d.Uint32(); {
	case d.Err() != nil:
	case s == replyAccepted:
		verf.decode(d)
		err = decodeAcceptStat(d)
	case s == replyDenied:
		err = decodeDenied(d)
	default:
		d.Fail(&xdr.ValueError{What: "reply_stat", Value: int64(s)})
	}
	if d.Err() != nil {
		return Auth{}, fmt.Errorf("malformed reply: %w", d.Err())
	}
	return verf, err
}

// decodeAcceptStat returns nil for Success.
func decodeAcceptStat(d *xdr.Decoder) error {
	stat := AcceptStat(d.Uint32())
	switch {
	case d.Err() != nil || stat == Success:
		return nil
	case stat == ProgMismatch:
		e := &AcceptError{Stat: stat}
		e.Low, e.High = decodeRange(d)
		return e
	case stat > SystemErr:
		d.Fail(&xdr.ValueError{What: "accept_stat", Value: int64(stat)})
		return nil
	}
	return &AcceptError{Stat: stat}
}

// decodeRange consumes the versions that a server has. Some servers leave them out: then
// the range is 0 to 0.
func decodeRange(d *xdr.Decoder) (low, high uint32) {
	if d.Len() == 0 {
		return 0, 0
	}
	return d.Uint32(), d.Uint32()
}

func decodeDenied(d *xdr.Decoder) error {
	stat := RejectStat(d.Uint32())
	switch stat {
	case RPCMismatch:
		e := &DeniedError{Stat: stat}
		e.Low, e.High = decodeRange(d)
		return e
	case AuthRejected:
		return &DeniedError{Stat: stat, Auth: AuthStat(d.Uint32())}
	}
	d.Fail(&xdr.ValueError{What: "reject_stat", Value: int64(stat)})
	return nil
}

// callHead is the head of a call.
type callHead struct {
	xid        uint32
	prog, vers uint32
	proc       uint32
	cred, verf Auth
}

// decode consumes a call up to its arguments. A [*DeniedError] is the answer. Any other
// error says that this is no RPC: the connection is closed.
func (h *callHead) decode(d *xdr.Decoder) error {
	h.xid = d.Uint32()
	kind := d.Uint32()
	version := d.Uint32()
	if d.Err() != nil {
		return errCutMessage
	}
	if kind != msgCall {
		return errNotCall
	}
	if version != rpcVersion {
		return &DeniedError{Stat: RPCMismatch, Low: rpcVersion, High: rpcVersion}
	}
	h.prog = d.Uint32()
	h.vers = d.Uint32()
	h.proc = d.Uint32()
	if err := decodeAuth(d, &h.cred, AuthBadCred); err != nil {
		return err
	}
	return decodeAuth(d, &h.verf, AuthBadVerf)
}

// decodeAuth consumes a credential or a verifier. One that is too long is denied as stat.
// One that is cut ends the connection.
func decodeAuth(d *xdr.Decoder, a *Auth, stat AuthStat) error {
	a.decode(d)
	err := d.Err()
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*xdr.LengthError](err); ok {
		return &DeniedError{Stat: AuthRejected, Auth: stat}
	}
	return fmt.Errorf("%w: %w", errCutMessage, err)
}
