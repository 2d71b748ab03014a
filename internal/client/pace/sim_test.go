package pace

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// service is how a simulated server answers from a time on.
type service struct {
	from  time.Duration
	slots int // calls served at once; the others queue, first come first
	spent func(r *rand.Rand, bytes int) time.Duration
	worse float64 // a call takes by this share longer while another one waits
	own   bool    // each slot has a queue of its own, as disks have: a call may wait while another slot is free
}

// about is a service time with a share of jitter, and never less than d.
func about(d time.Duration, jitter float64) func(*rand.Rand, int) time.Duration {
	return func(r *rand.Rand, _ int) time.Duration { return d + time.Duration(jitter*float64(d)*r.Float64()) }
}

// either is one of two service times.
func either(a, b time.Duration, share float64) func(*rand.Rand, int) time.Duration {
	return func(r *rand.Rand, _ int) time.Duration {
		if r.Float64() < share {
			return a
		}
		return b
	}
}

// world is a discrete event simulation of clients that call one server. It runs
// in virtual time and in one goroutine.
type world struct {
	rnd     *rand.Rand
	clock   time.Duration
	events  events
	begun   bool
	seq     int
	service []service
	wire    time.Duration // there and back, beside the service
	stalls  bool          // now and then nothing at all happens for some milliseconds
	refuse  int           // more calls than this at once are answered Busy; 0: never

	calls  int // at the server
	queues [][]*call
	busy   []int
	all    []*simClient
}

// simClient offers calls from so many callers that each make the next one as soon
// as the last has returned.
type simClient struct {
	turns   turns
	callers int
	since   time.Duration // begins then
	size    func(*rand.Rand) int
	quit    int // so many callers are to end after their call

	waiting []*call
	done    []reply
	refused int
}

type reply struct {
	at, took time.Duration
	bytes    int
}

type call struct {
	c       *simClient
	w       *waiter
	sent    time.Duration
	bytes   int
	refused bool
}

type event struct {
	at  time.Duration
	seq int
	do  func()
}

// events is a heap of what is to happen, the earliest first.
type events []event

func (e events) less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}

func (e *events) push(x event) {
	*e = append(*e, x)
	h := *e
	for i := len(h) - 1; i > 0 && h.less(i, (i-1)/2); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

func (e *events) pop() event {
	h := *e
	x, last := h[0], len(h)-1
	h[0], h[last] = h[last], event{}
	h = h[:last]
	*e = h
	for i := 0; 2*i+1 < last; {
		k := 2*i + 1
		if k+1 < last && h.less(k+1, k) {
			k++
		}
		if !h.less(k, i) {
			break
		}
		h[i], h[k] = h[k], h[i]
		i = k
	}
	return x
}

var epoch = time.Unix(1_000_000_000, 0)

func (w *world) now() time.Time { return epoch.Add(w.clock) }

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	w.events.push(event{w.clock + d, w.seq, do})
}

func (w *world) serves() service {
	s := w.service[0]
	for _, t := range w.service {
		if t.from <= w.clock {
			s = t
		}
	}
	return s
}

// add makes a client; limit 0 is adaptive.
func (w *world) add(limit, callers int) *simClient {
	c := &simClient{callers: callers}
	c.turns.init(limit, w.now)
	c.turns.climb.random = w.rnd.Uint32() | 1
	w.all = append(w.all, c)
	return c
}

func (w *world) begin() {
	w.begun = true
	for _, c := range w.all {
		for range c.callers {
			w.after(c.since+time.Duration(w.rnd.IntN(1000))*time.Microsecond, func() { w.enter(c) })
		}
	}
	if w.stalls {
		w.after(0, w.stall)
	}
}

// run lets everything happen until a time.
func (w *world) run(until time.Duration) {
	if !w.begun {
		w.begin()
	}
	for len(w.events) > 0 && w.events[0].at <= until {
		e := w.events.pop()
		w.clock = max(w.clock, e.at)
		e.do()
	}
}

// stall holds up the whole machine, as a hypervisor does.
func (w *world) stall() {
	w.clock += time.Duration(w.rnd.ExpFloat64() * float64(4*time.Millisecond))
	w.after(time.Duration(w.rnd.ExpFloat64()*float64(100*time.Millisecond)), w.stall)
}

func (w *world) enter(c *simClient) {
	k := &call{c: c}
	if c.size != nil {
		k.bytes = c.size(w.rnd)
	}
	if k.w = c.turns.join(); k.w != nil {
		c.waiting = append(c.waiting, k)
		return
	}
	w.send(k)
}

func (w *world) send(k *call) {
	k.sent = w.clock
	w.after(w.wire/2, func() {
		if w.refuse > 0 && w.calls >= w.refuse {
			k.refused = true
			w.after(w.wire/2, func() { w.leave(k) })
			return
		}
		w.calls++
		q := 0
		if s := w.serves(); s.own {
			q = w.rnd.IntN(s.slots)
		}
		for len(w.queues) <= q {
			w.queues, w.busy = append(w.queues, nil), append(w.busy, 0)
		}
		w.queues[q] = append(w.queues[q], k)
		w.serve(q)
	})
}

// serve begins what a queue has room for.
func (w *world) serve(q int) {
	s := w.serves()
	room := s.slots
	if s.own {
		room = 1
	}
	for w.busy[q] < room && len(w.queues[q]) > 0 {
		k := w.queues[q][0]
		w.queues[q] = w.queues[q][1:]
		w.busy[q]++
		spent := s.spent(w.rnd, k.bytes)
		if len(w.queues[q]) > 0 {
			spent += time.Duration(s.worse * float64(spent))
		}
		w.after(spent, func() {
			w.busy[q]--
			w.calls--
			w.serve(q)
			w.after(w.wire/2, func() { w.leave(k) })
		})
	}
}

func (w *world) leave(k *call) {
	c, took := k.c, w.clock-k.sent
	var pause time.Duration
	if k.refused {
		c.refused++
		c.turns.leave(took, 0, Busy)
		pause = time.Duration(50+w.rnd.IntN(50)) * time.Millisecond // as nfsclient does
	} else {
		c.turns.leave(took, k.bytes, OK)
		c.done = append(c.done, reply{w.clock, took, k.bytes})
	}
	for len(c.waiting) > 0 && len(c.waiting[0].w.token) > 0 {
		next := c.waiting[0]
		c.waiting = c.waiting[1:]
		<-next.w.token
		c.turns.admitted(next.w)
		w.send(next)
	}
	if c.quit > 0 {
		c.quit--
		return
	}
	w.after(pause, func() { w.enter(c) })
}

// result is what a client got between two times.
type result struct {
	ops, bytes float64 // a second
	p50, p99   time.Duration
	mean       time.Duration
}

func (c *simClient) between(from, to time.Duration) result {
	var took []time.Duration
	var sum time.Duration
	bytes := 0
	for _, r := range c.done {
		if r.at >= from && r.at < to {
			took = append(took, r.took)
			sum += r.took
			bytes += r.bytes
		}
	}
	if len(took) == 0 {
		return result{}
	}
	slices.Sort(took)
	at := func(q float64) time.Duration { return took[int(math.Ceil(q*float64(len(took))))-1] }
	span := (to - from).Seconds()
	return result{float64(len(took)) / span, float64(bytes) / span, at(0.5), at(0.99), sum / time.Duration(len(took))}
}
