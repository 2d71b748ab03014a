package pace

// waiter is a call that waits for its turn.
type waiter struct {
	token      chan struct{} // holds one once the call is admitted
	queued     bool
	prev, next *waiter
}

// queue holds the calls that wait, first come first. Waiters are kept and used again.
type queue struct {
	head, tail *waiter
	n          int
	free       *waiter // linked by next
	nfree      int
}

// push queues a new waiter.
func (q *queue) push() *waiter {
	w := q.free
	if w == nil {
		w = &waiter{token: make(chan struct{}, 1)}
	} else {
		q.free = w.next
		q.nfree--
	}
	w.queued, w.prev, w.next = true, q.tail, nil
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
	q.n++
	return w
}

// remove takes w out, wherever it stands.
func (q *queue) remove(w *waiter) {
	if w.prev == nil {
		q.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.queued, w.prev, w.next = false, nil, nil
	q.n--
}

// keep takes back a waiter that is not queued and holds no token.
func (q *queue) keep(w *waiter) {
	if q.nfree == freeWaiters {
		return
	}
	w.next, q.free = q.free, w
	q.nfree++
}
