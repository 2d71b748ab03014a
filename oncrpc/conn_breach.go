package oncrpc

import (
	"encoding/binary"
	"errors"
)

// This file tells connections that end because the server broke the protocol from those
// that only end. After a breach the call has one more try, since a bit may have been
// wrong on the way. A server that breaks the protocol in the same way again would do so
// for ever, and each time take down the connection that other calls use.

// errTooLong stands for every RecordError: the announced length does not make it another
// kind of breach.
var errTooLong = errors.New("record too long")

// breachOf is the kind of breach that err is; nil: none.
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

// blame notes the breach in the call whose number the reply has. Without a number it is
// noted in all calls of the connection, as surely theirs if there is only one. hub.mu is
// held.
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

// suspect is the call whose reply is being read. Before the head has been read, the
// first four bytes are taken for the number. hub.mu is held.
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
