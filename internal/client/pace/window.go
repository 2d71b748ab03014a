package pace

import "time"

// window measures the replies that come while one limit holds. The zero window is
// ready.
type window struct {
	skip  int       // replies to come that are of calls from before the limit was set
	open  bool      // a first reply has come, and opened it at began
	began time.Time // since when n, work and took are counted
	n     int
	work  uint64 // what the calls cost the server: opWork each, and their bytes
	took  time.Duration
	look  int  // the n at which the clock is looked at again
	slack int  // replies after which no call waited
	idle  bool // see sample
	peak  int
}

// load is what a class looks like when a reply has come and before others are let
// in.
type load struct {
	limit, inFlight int
	waiting         bool
}

// add counts a reply. It returns true if it is time to look at the clock, which costs more than
// all else here.
func (w *window) add(l load, took time.Duration, bytes int) bool {
	w.n++
	w.work += workOf(bytes)
	w.took += max(took, 0)
	w.peak = max(w.peak, l.inFlight+1)
	if !l.waiting {
		w.slack++
		w.idle = w.idle || 2*l.inFlight < l.limit
	}
	if w.n < w.look {
		return false
	}
	w.look = w.n + lookEvery(l.limit)
	return true
}

// workOf is what a call that moves so many bytes costs the server.
func workOf(bytes int) uint64 { return uint64(max(bytes, 0)) + opWork }

// start opens the window at a reply, which itself does not count.
func (w *window) start(now time.Time, limit int) {
	w.open, w.began, w.look = true, now, lookEvery(limit)
}

// lookEvery is the number of replies between two looks at the clock. That is twice in a round
// trip, or four times in the shortest window.
func lookEvery(limit int) int { return max(limit/2, minReplies/4) }

// full says whether the window has seen enough by now.
func (w *window) full(now time.Time, limit int, least time.Duration) bool {
	elapsed := now.Sub(w.began)
	if elapsed < least || w.n < minReplies {
		return false
	}
	return w.n >= minRounds*limit || elapsed >= maxWindow
}

// sample is what the window has measured by now, which is after began.
func (w *window) sample(now time.Time, limit int) sample {
	return sample{
		limit: limit,
		peak:  w.peak,
		rate:  float64(w.work) / now.Sub(w.began).Seconds(),
		cost:  max(w.took.Seconds(), 1e-9) / float64(w.work), // a clock may be too coarse to see a round trip
		lat:   w.took.Seconds() / float64(w.n),
		used:  !w.idle && 2*w.slack < w.n,
		idle:  w.idle,
	}
}
