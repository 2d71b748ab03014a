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
	cost  float64 // seconds a unit of work took: the mean round trip, whatever the calls' sizes
	lat   float64 // seconds a call took: the mean round trip
	used  bool    // the limit kept calls waiting most of the time
	idle  bool    // at some time there were not enough calls for half the limit
}

type state uint8

const (
	rising   state = iota // looking for the knee from below, doubling
	falling               // looking for it from above, halving
	hovering              // staying at it, by trials
)

// climber finds the limit and keeps finding it. It is arithmetic alone: the
// sample of a window in, the limit of the next window out.
type climber struct {
	state state
	limit int     // of the next window
	base  float64 // the cost without a queue, as far as it is known; 0 is not

	// Before the first search.
	opening  bool
	quickest time.Duration // reply so far
	replies  int
	work     uint64 // of them

	// Searching.
	ref   sample  // of the limit before
	knee  float64 // rising: no knee is below
	max   float64 // the highest rate of this search
	quiet float64 // the least time of a slot a unit of work took in this search; 0 before there is one
	again bool    // rising: no gain was seen, and is looked for once more

	// Hovering.
	centre float64 // what the trials are about
	rest   int     // windows to come at the centre, before the next trial
	stay   int     // what rest was set to last
	fine   bool    // the next trial is a fine one: the last has changed little
	mid    float64 // the best goodput at the centre since the last trial; 0: not measured
	trial  trial
	usual  float64 // the cost of late
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

// least is the least time of the next window. Whether a server that has become
// faster is so still is soon seen: hiccups make it slower.
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

// open takes a reply before the first search, and whether the limit keeps calls waiting, and
// returns the limit from now on. A queue shows a round trip late, when there are twice as
// many calls: then the limit is halved, and the search begins. It knows from here what a call
// takes without a queue.
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

// far reports whether the last reply is the one that shows that the server is far away:
// none has been quicker than a window.
func (c *climber) far() bool { return c.opening && c.replies == farReplies }

// widen has the opening begin with farLimit, if it has not begun, and returns the limit.
func (c *climber) widen() int {
	if c.opening && c.replies == 0 {
		c.limit = farLimit
	}
	return c.limit
}

// cut lowers the limit at once: the server has refused a call, or lost one.
func (c *climber) cut(factor float64) int {
	c.opening = false
	c.calm = calmTrials
	c.settle(float64(c.limit) * factor)
	return c.limit
}

// settle ends a search, at a limit.
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

// price is the elasticity of goodput that makes a higher limit worth while: a limit that is
// higher by a small share must let more through by price times that share. It is small, and
// grows with the square of the queue. While a round trip is too short to matter it is
// negative, and even a little less goodput will do: where noise hides the gain, the limit
// drifts up.
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
