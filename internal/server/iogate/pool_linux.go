package iogate

// backend makes data calls for others.
type backend interface {
	// start hands c over. Once it is made, done gets c's result.
	start(c *call)
	threads() threads
	close() error // nothing is under way any more
}

// pool keeps the calls of a backend: as many as there are places, so that
// a call that has a place finds one.
type pool struct {
	b     backend
	calls []call
	spare chan *call
}

// call is one call on its way through a backend. It lives on the heap, and what
// it points to as well: memory that others write to must not move.
type call struct {
	index uint32
	op    op
	fd    int
	p     []byte
	off   int64

	n    int
	err  error
	done chan struct{} // has room for one
}

func newPool(n int) *pool {
	p := &pool{calls: make([]call, n), spare: make(chan *call, n)}
	for i := range p.calls {
		c := &p.calls[i]
		c.index, c.done = uint32(i), make(chan struct{}, 1)
		p.spare <- c
	}
	return p
}

// run has a call made, and waits without holding a thread.
func (p *pool) run(op op, fd int, buf []byte, off int64) (int, error) {
	var c *call
	select {
	case c = <-p.spare:
	default: // somebody has no place, and gets no more than that
		return op.do(fd, buf, off)
	}
	c.op, c.fd, c.p, c.off = op, fd, buf, off
	p.b.start(c)
	<-c.done
	n, err := c.n, c.err
	c.p, c.err = nil, nil
	p.spare <- c
	return n, err
}
