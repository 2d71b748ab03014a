package oncrpc

// A connection's calls are executed by workers. One that takes a call sees to it
// that another is on its way if there is more to do than this call: more calls,
// or replies to be sent. A handler that blocks thus holds up nobody, as if each
// call had a goroutine of its own. But as long as none blocks, one worker does
// all that was read at once, and its replies leave in one write: the other one,
// when its time comes, finds nothing left to do.

// begin counts a call as under way and hands it to a worker.
func (sc *serverConn) begin(c *Call) {
	sc.s.underWay.Add(1)
	sc.mu.Lock()
	sc.calls++
	sc.total++
	if sc.taken > 0 && len(sc.ready) == cap(sc.ready) {
		sc.ready = sc.ready[:copy(sc.ready, sc.ready[sc.taken:])]
		sc.taken = 0
	}
	sc.ready = append(sc.ready, c)
	start := !sc.pending
	sc.pending = true
	sc.mu.Unlock()
	if start {
		go sc.worker()
	}
}

// work executes calls until there are none.
func (sc *serverConn) work() {
	for c := sc.next(true); c != nil; c = sc.next(false) {
		to, took := c.run()
		if to != route(sc) || took > holdReplies {
			to.flush()
		}
	}
	sc.flush()
}

// next takes the next call for a worker, and starts another worker if there is
// more to do. first says that this one was on its way until now.
func (sc *serverConn) next(first bool) *Call {
	sc.mu.Lock()
	if first {
		sc.pending = false
	}
	if len(sc.ready) == 0 {
		sc.mu.Unlock()
		return nil
	}
	c := sc.ready[sc.taken]
	sc.ready[sc.taken] = nil
	if sc.taken++; sc.taken == len(sc.ready) {
		sc.ready, sc.taken = sc.ready[:0], 0
	}
	start := !sc.pending && (len(sc.ready) > 0 || sc.waiting > 0)
	sc.pending = sc.pending || start
	sc.mu.Unlock()
	if start {
		go sc.worker()
	}
	return c
}

// flushOwn is the reader's flush, before it blocks: of the replies that it has
// given itself, unless a worker is on its way, which will do it.
func (sc *serverConn) flushOwn() {
	sc.mu.Lock()
	pending := sc.pending
	sc.mu.Unlock()
	if !pending {
		sc.flush()
	}
}
