package oncrpc

import "encoding/binary"

// handTogether hands over the replies that stand whole in the read buffer, side
// by side: under one lock, and in one buffer that they share. It stops before the
// first that takes bulk, or that nobody waits for, and answers false if there are
// not two: such a reply is dealt with by itself.
func (cc *clientConn) handTogether() bool {
	run := cc.r.run()
	n := recordBytes(run)
	if n == 0 || n == len(run) || !cc.expects(run[markBytes:n]) {
		return false
	}
	c := cc.c
	shared := c.pool.Get(len(run))
	defer shared.Release()
	copy(shared.B, run)
	c.mu.Lock()
	defer c.mu.Unlock()
	handed := false // of a call that was cancelled just now, the reply is not
	for rest := shared.B; len(rest) > 0; {
		rec := rest[markBytes:recordBytes(rest)]
		pc := cc.awaited(rec)
		if pc == nil {
			break
		}
		cc.r.pass(markBytes + len(rec))
		cc.rec = shared.Share()
		cc.hand(pc, rec)
		rest, handed = rest[markBytes+len(rec):], true
	}
	return handed
}

// expects reports whether a call without bulk waits for the reply in rec. It is
// looked at before anything is copied: a server that repeats itself for ever is not
// to cost more than what it sends.
func (cc *clientConn) expects(rec []byte) bool {
	cc.c.mu.Lock()
	defer cc.c.mu.Unlock()
	return cc.awaited(rec) != nil
}

// awaited finds the call, without bulk, that waits for the reply in rec. Client.mu
// is held.
func (cc *clientConn) awaited(rec []byte) *call {
	if len(rec) < 8 || binary.BigEndian.Uint32(rec[4:]) != msgReply {
		return nil
	}
	cc.xid = binary.BigEndian.Uint32(rec)
	if pc := cc.lookup(); pc != nil && pc.bulkRes == nil {
		cc.spoke, cc.stray = true, 0
		return pc
	}
	return nil
}
