package oncrpc

import "errors"

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
// that was: that of the call whose number it had, if it came so far; else that of
// the only call, or perhaps of any. Client.mu is held.
func (cc *clientConn) blame(err error) {
	kind := breachOf(err)
	if kind == nil {
		return
	}
	numbered := cc.phase > inHead
	owner := cc.lookup()
	for _, pc := range cc.c.slots {
		if pc != nil && pc.conn == cc && !pc.finished && (!numbered || pc == owner) {
			pc.breach, pc.mine = kind, numbered || cc.calls == 1
		}
	}
}

// count adds the breach with which a try ended, if it ended so, to those before it.
// What was not written whole had no reply to come. Client.mu is held.
func (pc *call) count() {
	switch {
	case pc.breach == nil || !pc.wrote:
		return
	case pc.breach != pc.broken:
		pc.broken, pc.breaches, pc.near = pc.breach, 0, 0
	}
	if pc.mine {
		pc.breaches++
	} else {
		pc.near++
	}
	pc.breach = nil
}

// breached reports whether the reply breaks the protocol in the same way each time.
func (pc *call) breached() bool {
	return pc.breaches >= maxBreaches || pc.near >= maxNearBreaches
}
