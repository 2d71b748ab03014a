package oncrpc

import (
	"encoding/binary"
)

// handTogether hands out the replies that stand whole in the read buffer, side by side:
// under one lock, and in one buffer that they share. It stops before the first reply that
// takes bulk or that no call waits for. It returns false if there are not two: a single
// reply goes through step.
func (cc *clientConn) handTogether() bool {
	in := cc.r.standing()
	in = in[:min(len(in), maxTogether)]
	first := recordBytes(in)
	if first == 0 || recordBytes(in[first:]) == 0 {
		return false
	}
	h := cc.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	end := cc.expected(in)
	if end <= first {
		return false
	}
	shared := h.pool.Get(end)
	defer shared.Release()
	copy(shared.B, in)
	for rest := shared.B; len(rest) > 0; {
		n := recordBytes(rest)
		rec := rest[markBytes:n:n]
		pc := cc.awaited(rec)
		if pc == nil { // the second reply to one call
			break
		}
		cc.r.pass(n)
		cc.rec = shared.Share()
		cc.hand(pc, rec)
		rest = rest[n:]
	}
	return true
}

// expected is how many bytes at the beginning of in are replies that calls without bulk
// wait for. It looks no further and copies nothing: a server that repeats itself for ever
// costs no more than what it sends. hub.mu is held.
func (cc *clientConn) expected(in []byte) (end int) {
	for n := recordBytes(in); n > 0 && n-markBytes <= cc.r.max && cc.awaited(in[end+markBytes:end+n]) != nil; {
		end += n
		n = recordBytes(in[end:])
	}
	return end
}

// awaited finds the call without bulk that waits for the reply in rec; nil: none does.
// hub.mu is held.
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
