package pace

import (
	"math"
	"time"
)

// sample is what one window has measured.
type sample struct {
	limit int     // that held
	peak  int     // the most calls that were under way
	rate  float64 // goodput: work a second
	cost  float64 // the mean round trip for each unit of work, in seconds: calls of all sizes compare
	lat   float64 // the mean round trip of a call, in seconds
	used  bool    // the limit kept calls waiting most of the time
	idle  bool    // at some time there were not enough calls for half the limit
}

type state uint8

const (
	rising   state = iota // looking for the knee from below, doubling
	falling               // looking for it from above, halving
	hovering              // staying at it, by trials
)

// climber finds the limit and keeps finding it. It only calculates: it is given the sample of a
// window, and returns the limit of the next one.
type climber struct {
	state state
	limit int     // of the next window
	base  float64 // the cost without a queue, as far as it is known; 0 is not

	// Before the first search.
	opening  bool          // the limit grows with each reply, as in TCP's slow start
	quickest time.Duration // the shortest round trip so far
	replies  int           // so far
	work     uint64        // of these calls

	// Searching.
	ref   sample  // of the limit before this one; its limit is 0 if there is none
	knee  float64 // rising: the knee is not below this limit
	max   float64 // the highest rate in this search
	quiet float64 // the least limit/rate of this search: what a unit of work takes without a queue; 0: none yet
	again bool    // rising: the last doubling brought no gain, and is tried once more

	// Hovering.
	centre float64 // the limit around which trials go
	rest   int     // windows to come at the centre, before the next trial
	stay   int     // what rest was last set to
	fine   bool    // the next trial is a fine one, as the last has changed little
	mid    float64 // the best goodput at the centre since the last trial; 0: not measured
	trial  trial
	usual  float64 // the cost of recent windows
	odd    int     // windows in a row above the usual (> 0) or below (< 0)
	run    int     // trials in a row that moved up (> 0) or down (< 0)
	steep  int     // trials in a row whose goodput grew like the limit
	calm   int     // trials to come that may not move up
	patrol int     // trials to come until a suspected queue is looked into
	pause  int     // what patrol is set to next
	random uint32  // never 0

	// The limit that was best before the server last became slower, and what a unit
	// of work cost then; 0: it never has, or has become faster since.
	former, formerCost float64
}

func (c *climber) init(seed uint32) {
	c.limit, c.opening = firstLimit, true
	c.pause = minPatrol
	c.random = max(seed, 1)
}

// least is the shortest time of the next window. A server that seems faster is looked at again
// soon, in a short one: a hiccup would have made it slower.
func (c *climber) least() time.Duration {
	if c.state == hovering && c.odd >= 0 {
		return hoverTime
	}
	return searchTime
}

// next takes a window's sample and returns the limit of the next one.
func (c *climber) next(s sample) int {
	switch c.state {
	case rising:
		c.rise(s)
	case falling:
		c.fall(s)
	case hovering:
		c.hover(s)
	}
	return c.limit
}

// open takes a reply before the first search, and returns the limit from now on. waiting says that
// the limit keeps calls waiting. A queue shows a round trip late, when there are twice as many
// calls. Then the limit is halved, and the search begins, with what a call takes without a queue.
func (c *climber) open(took time.Duration, work uint64, waiting bool) int {
	c.replies++
	c.work += work
	if c.quickest == 0 || took < c.quickest {
		c.quickest = took
	}
	switch {
	case took < searchTime:
		c.opening = false // windows are as quick
	case took > openQueued*c.quickest:
		c.opening = false
		c.limit = max(c.limit/2, firstLimit)
		c.quiet = c.quickest.Seconds() * float64(c.replies) / float64(c.work)
	case waiting:
		c.limit++
		c.opening = c.limit < MaxLimit
	}
	return c.limit
}

// far is true once: for the reply that shows that the server is far away, as none so far was
// quicker than a window.
func (c *climber) far() bool { return c.opening && c.replies == farReplies }

// widen lets a class that has had no reply begin with farLimit, and returns the limit.
func (c *climber) widen() int {
	if c.opening && c.replies == 0 {
		c.limit = farLimit
	}
	return c.limit
}

// cut lowers the limit to factor times what it is: the server has refused a call, or not answered
// it.
func (c *climber) cut(factor float64) int {
	c.opening = false
	c.calm = calmTrials
	c.settle(float64(c.limit) * factor)
	return c.limit
}

// settle ends a search, and lets trials begin around centre.
func (c *climber) settle(centre float64) {
	c.state = hovering
	c.centre = centre
	c.usual, c.odd, c.run, c.steep = 0, 0, 0, 0
	c.rest, c.stay, c.fine = 0, 0, false
	c.begin()
}

// floor lets base follow a lower cost.
func (c *climber) floor(cost float64) {
	switch {
	case c.base == 0:
		c.base = cost
	case cost < c.base:
		c.base += floorShare * (cost - c.base)
	}
}

// price is how much a higher limit must gain to be worth while. A limit that is higher by a small
// share has to let through more by price times that share. The price is low at first, and grows
// with the square of the queue. While a round trip is too short to matter the price is negative,
// and even a little less goodput will do. So the limit drifts up where noise hides the gain.
func (c *climber) price(s sample) float64 {
	short := min(2*s.lat/shortTrip-1, 1)
	base := max(c.base*s.lat/s.cost, shortTrip)
	queue := max(s.lat/base-1, 0) / dearQueue
	return min(short*leastPrice+queue*queue, highestPrice)
}

// clamp keeps a limit within bounds.
func clamp(limit float64) int {
	return int(math.Round(min(max(limit, minLimit), MaxLimit)))
}
