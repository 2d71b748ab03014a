package oncrpc

import (
	"encoding/binary"

	"github.com/nfsbox/nfsbox/xdr"
)

// Reply encodes res as the call's results. The reply leaves when the handler has returned.
// The handler should return an error of Reply: res did not encode, or there is a reply
// already.
func (c *Call) Reply(res xdr.Appender) error {
	if c.reply.buf != nil {
		return errReplyTwice
	}
	b := c.begin(int(c.counters.hint.Load()))
	var err error
	if b, err = res.AppendXDR(b); err == nil {
		err = endRecord(b, 0, 0)
	}
	c.reply.buf.B = b
	if n := int32(min(len(b), maxReplyHint)); n > c.counters.hint.Load() {
		c.counters.hint.Store(n)
	}
	if err != nil {
		c.reply.drop()
	}
	return err
}

// ReplyBulk is [Call.Reply] for results with bulk. The bulk is written from where it is,
// with the rest in one vectored write. owner, if it is not nil, is released exactly once:
// when the bulk has been written, or will not be. An error of ReplyBulk releases it, too.
func (c *Call) ReplyBulk(res xdr.BulkArgs, owner Releaser) error {
	bulk := res.Bulk()
	if c.reply.buf == nil && len(bulk) > inlineBulk {
		return c.replyBulk(res, bulk, owner)
	}
	err := c.Reply(res)
	if owner != nil {
		owner.Release()
	}
	return err
}

func (c *Call) replyBulk(res xdr.BulkArgs, bulk []byte, owner Releaser) error {
	b := c.begin(0)
	c.reply.bulk, c.reply.owner = bulk, owner
	var err error
	if b, err = res.AppendHead(b); err == nil {
		c.reply.at = len(b)
		if b, err = res.AppendTail(b); err == nil {
			err = endRecord(b, 0, len(bulk))
		}
	}
	c.reply.buf.B = b
	if err != nil {
		c.reply.drop()
	}
	return err
}

// begin gets a buffer for a reply of about n bytes, and appends the head of an accepted
// one.
func (c *Call) begin(n int) []byte {
	c.reply.buf = c.s.pool.Get(n)
	return appendAccepted(beginRecord(c.reply.buf.B[:0]), c.XID, nil, Success)
}

// replyVoid is a reply without results. Like the two below it is never too long.
func (c *Call) replyVoid() { c.short(c.begin(0)) }

func (c *Call) replyError(err error) {
	c.reply.buf = c.s.pool.Get(0)
	c.short(appendError(beginRecord(c.reply.buf.B), c.XID, err))
}

func (c *Call) replyStartTLS() {
	c.reply.buf = c.s.pool.Get(0)
	c.short(appendAccepted(beginRecord(c.reply.buf.B), c.XID, startTLS[:], Success))
}

func (c *Call) short(b []byte) {
	c.reply.buf.B = b
	_ = endRecord(b, 0, 0) // fails above 2 GiB
}

// length is the reply's, in bytes, without its record mark; 0: there is none.
func (a *answered) length() int {
	if a.buf == nil {
		return 0
	}
	return len(a.buf.B) - markBytes + len(a.bulk)
}

// result is the first word of the results of a call that has succeeded; 0: there is none,
// or they begin with bulk.
func (a *answered) result() uint32 {
	const at = markBytes + acceptedBytes
	switch {
	case a.buf == nil, len(a.buf.B) < at+4, a.bulk != nil && a.at < at+4:
		return 0
	}
	return binary.BigEndian.Uint32(a.buf.B[at:])
}

// drop releases the reply, if there is one.
func (a *answered) drop() {
	if a.buf != nil {
		a.buf.Release()
	}
	if a.owner != nil {
		a.owner.Release()
	}
	*a = answered{}
}
