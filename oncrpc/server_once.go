package oncrpc

// once is what a call knows of the reply cache.
type once struct {
	is     bool         // the procedure must not be executed twice
	client *replyClient // nil: and yet nobody remembers
	serial uint64       // of the connection, or the datagram
	memory *remembered  // claimed, and to be settled
	forget bool
}

// Forget says that the reply to c is not to be remembered, because a
// retransmission should be executed anew: it says "try again later", or that the
// call was cut off. Replies that are errors of RPC are not remembered anyway.
func (c *Call) Forget() { c.once.forget = true }

// claim asks the reply cache what is to become of c, and answers whether to
// execute it. If not, c is used up.
func (c *Call) claim() bool {
	to, m, r := c.to, c.once.client, c.once.client.cache
	k := callKey{c.Proc.Program, c.Proc.Version, c.Proc.Number, c.XID, r.key.call(c.Auth, c.Args.Rest())}
	v, memory, reply, before := m.claim(k, asker{to, c.once.serial}, &c.s.pool, c)
	switch v {
	case execute:
		c.once.memory = memory
		return true
	case replay:
		r.hits.Add(1)
		c.reply.buf = reply
		c.observe(nil, c.measure(nil))
		c.free()
		to.enqueue(answered{buf: reply})
		return false
	case outrun:
		before = to
		c.aside()
	}
	r.joined.Add(1)
	if before != nil {
		before.enqueue(answered{})
	}
	if v == joined && to.context().Err() != nil {
		m.leave(to) // its connection was lost meanwhile, and has left before
	}
	return false
}

// aside frees a call that is not answered here.
func (c *Call) aside() {
	c.meter.aside.Add(1)
	c.free()
}

// late drops a call whose connection was lost before it began. The client has
// asked again, or will; executed behind its back, the call could undo what was
// done since.
func (c *Call) late() {
	to := c.to
	c.s.stats.late.Add(1)
	c.aside()
	to.enqueue(answered{})
}

// settle tells the reply cache what the handler has answered, if it was to know.
// It returns the asker that gets the reply, if that is not the one that had the
// call executed.
func (c *Call) settle(err error) route {
	m, a := c.once.client, &c.reply
	if err != nil || c.once.forget || !c.s.admits(c.State) {
		m.cache.forgotten.Add(1)
		return m.settle(c.once.memory)
	}
	if a.length() > maxRememberedReply {
		m.cache.tooLong.Add(1)
		return m.settle(c.once.memory)
	}
	defer m.cache.trim()
	if a.bulk == nil {
		return m.settle(c.once.memory, a.buf.B[markBytes:])
	}
	return m.settle(c.once.memory, a.buf.B[markBytes:a.at], a.bulk, a.buf.B[a.at:])
}
