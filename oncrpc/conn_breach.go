package oncrpc

import (
	"encoding/binary"
	"errors"
)

// This file knows connections that end because of what came on them, in contrast to
// those that only end. Another connection mends the latter. Of the former a call
// gets a second try, since a bit may have been wrong on the way; a server that then
// breaks the protocol in the same way again would do so for ever, and each time take
// down the connection that others use.

// errTooLong stands for every RecordError: how long the record would be, which may
// be any number, makes it no other breach.
var errTooLong = errors.New("record too long")

// breachOf is what kind of breach err is, with which a connection ended; nil: none.
func breachOf(err error) error {
	for _, kind := range [...]error{errNotReply, errCutMessage, errEmpties, errStray} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	if _, ok := errors.AsType[*RecordError](err); ok {
		return errTooLong
	}
	return nil
}

// blame notes that the connection ends because of what came on it, and whose reply
// that was: that of the call whose number stands there; else that of the only call,
// or perhaps of any. hub.mu is held.
func (cc *clientConn) blame(err error) {
	kind := breachOf(err)
	if kind == nil {
		return
	}
	numbered := cc.stage > inHead
	owner := cc.suspect()
	for _, pc := range cc.hub.slots {
		if pc != nil && pc.conn == cc && pc.phase != over && (owner == pc || owner == nil && !numbered) {
			pc.breach, pc.mine = kind, owner == pc || cc.calls == 1
		}
	}
}

// suspect is the call whose reply is being read, as far as that can be told from its
// number or, where it has not come so far, from what stands in a number's place.
// hub.mu is held.
func (cc *clientConn) suspect() *call {
	if cc.stage <= inHead {
		first := cc.r.buf[cc.r.r:cc.r.w]
		if cc.rec != nil && len(cc.rec.B) > 0 {
			first = cc.rec.B
		}
		if len(first) < 4 {
			return nil
		}
		cc.xid = binary.BigEndian.Uint32(first)
	}
	return cc.lookup()
}
