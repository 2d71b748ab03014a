package pace

import "math"

// trial compares two limits around the centre, in four windows: low, high, high, low, or the other
// way round. So a server that becomes steadily faster or slower favours neither.
type trial struct {
	low, high int
	swapped   bool // high, low, low, high
	step      int
	slack     bool       // there were not enough calls for the high limit
	rates     [2]float64 // the better of the low ones, and of the high ones: noise only makes them worse
	cost      float64    // sum, of the low ones
}

func (t *trial) isHigh() bool { return (t.step == 1 || t.step == 2) != t.swapped }

// limit is that of the next window.
func (t *trial) limit() int {
	if t.isHigh() {
		return t.high
	}
	return t.low
}

// begin lays out the next trial. Its order is random, so that clients that share
// a server do not step in time.
func (c *climber) begin() {
	c.centre = min(max(c.centre, minLimit), MaxLimit)
	c.random ^= c.random << 13
	c.random ^= c.random >> 17
	c.random ^= c.random << 5
	far := spread
	if c.fine = c.fine && c.centre*fineSpread >= 1; c.fine {
		far = fineSpread
	}
	low := min(clamp(c.centre*(1-far)), MaxLimit-1)
	high := max(clamp(c.centre*(1+far)), low+1)
	c.trial = trial{low: low, high: high, swapped: c.random&1 != 0}
	c.mid = 0
	if c.limit = c.trial.limit(); c.rest > 0 {
		c.limit = clamp(c.centre)
	}
}

// repose takes the sample of a window at the centre, between two trials.
func (c *climber) repose(s sample) {
	if !s.used {
		c.rest, c.stay = 0, 0
		c.begin()
		return
	}
	c.mid = max(c.mid, s.rate)
	if c.rest--; c.rest == 0 {
		c.limit = c.trial.limit()
	}
}

// hover takes the next window of a trial or of a rest, unless the server has changed.
func (c *climber) hover(s sample) {
	usual := c.usual
	change := c.changed(s)
	switch {
	case change > 0:
		c.former, c.formerCost = c.centre, usual
		c.search(falling, s)
		return
	case change < 0 && s.used && c.calm == 0:
		c.search(rising, s)
		c.recall(s)
		return
	case c.odd != 0:
		return // this window does not count, and is measured again
	case c.rest > 0:
		c.repose(s)
		return
	}
	t := &c.trial
	if !s.used {
		if s.idle || s.peak <= t.low {
			c.begin() // a limit that keeps no call waiting shows nothing
			return
		}
		t.high, t.slack = min(t.high, s.peak), true
	}
	if t.isHigh() {
		t.rates[1] = max(t.rates[1], s.rate)
	} else {
		t.rates[0] = max(t.rates[0], s.rate)
		t.cost += s.cost
	}
	if t.step++; t.step < trialWindows {
		c.limit = t.limit()
		return
	}
	c.judge(s)
}

// changed says whether two windows in a row cost more (1) or less (-1) than is usual, by more than
// noise.
func (c *climber) changed(s sample) int {
	if c.usual == 0 {
		c.usual = s.cost
	}
	switch side := c.outside(s.cost, s.lat); {
	case side == 0:
		c.odd = 0
		c.usual += usualShare * (s.cost - c.usual)
		return 0
	case side*c.odd <= 0:
		c.odd = side
		return 0
	default:
		c.usual, c.odd = s.cost, 0
		return side
	}
}

// outside says on which side of the usual a cost is: 1 above, -1 below, 0 about
// there.
func (c *climber) outside(cost, lat float64) int {
	switch {
	case c.state != hovering || c.usual == 0:
		return 0
	case cost > c.usual*band && lat > shortTrip:
		return 1
	case cost < c.usual/band && lat/cost*c.usual > shortTrip:
		return -1
	}
	return 0
}

// judge ends a trial and moves the centre: up if goodput grew by more than the
// price of a higher limit, else down.
func (c *climber) judge(s sample) {
	t := &c.trial
	width := math.Log(float64(t.high) / float64(t.low))
	gain := min(max(math.Log(t.rates[1]/t.rates[0]), -width/2), width*3/2) // what is beyond is noise
	cost := t.cost / (trialWindows / 2)
	s.limit, s.rate, s.cost, s.lat = t.high, t.rates[1], cost, s.lat/s.cost*cost
	c.floor(cost)
	if gain > steepest*width && cost > c.base && !c.fine {
		c.base *= 1 + baseCreep // no queue to be seen
	}
	price := c.price(s)
	if c.mid > peakGain*max(t.rates[0], t.rates[1]) {
		gain = price * width // both sides are worse
	}
	if c.calm > 0 || t.slack {
		c.calm = max(c.calm-1, 0)
		gain = min(gain, price*width)
	}
	switch {
	case gain <= max(steep, price+steepAbove)*width:
		c.steep = 0
	case !c.fine:
		c.steep++
	}
	c.patrol = max(c.patrol-1, 0)
	switch queued := cost > queueSeen*c.base && s.lat > shortTrip; {
	case c.steep == steepRun:
		c.search(rising, s)
	case queued && c.patrol == 0 && gain < price*width:
		c.patrol, c.pause = c.pause, min(2*c.pause, maxPatrol)
		c.search(falling, s)
	default:
		if !queued {
			c.pause = minPatrol
		}
		c.move(damping * (gain - price*width))
	}
}

// move shifts the centre's logarithm. Moves in one direction grow longer.
func (c *climber) move(by float64) {
	back := by*float64(c.run) < 0
	switch {
	case by > 0:
		c.run = min(max(c.run, 0)+1, maxRunUp)
		by *= float64(c.run)
	case by < 0:
		c.run = max(min(c.run, 0)-1, -maxRunDown)
		by *= float64(-c.run)
	default:
		c.run = 0
	}
	// Where a trial has changed little, or taken back what the last one did, the
	// next one would, too: it can wait, and longer each time.
	if math.Abs(by) < restMove || back {
		c.stay, c.fine = min(max(2*c.stay, minRest), maxRest), true
	} else {
		c.stay, c.fine = 0, false
	}
	c.rest = c.stay
	c.centre *= math.Exp(min(max(by, -maxMove), maxMove))
	c.begin()
}
