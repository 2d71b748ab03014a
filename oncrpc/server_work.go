package oncrpc

// Workers execute a connection's calls. A worker that takes a call starts another one if
// more than this call is left: further calls, or replies to be sent. So a handler that
// blocks holds up no other call, as if each had a goroutine of its own. While none blocks,
// one worker executes all calls that were read at once, and their replies leave in one
// write. The other worker then finds nothing left to do.

// begin counts a call as under way, and hands it to a worker.
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

// next takes the next call for a worker, and starts another worker if more is left. first
// says that this is the worker's first call: it is no longer pending.
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

// flushOwn is the reader's flush, before it blocks. It leaves the replies to a worker if
// one is pending.
func (sc *serverConn) flushOwn() {
	sc.mu.Lock()
	pending := sc.pending
	sc.mu.Unlock()
	if !pending {
		sc.flush()
	}
}
