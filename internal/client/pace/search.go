package pace

import "math"

// search begins to look for the knee, from s, the sample of the present limit.
func (c *climber) search(to state, s sample) {
	if to == rising && s.limit >= MaxLimit {
		c.settle(MaxLimit)
		return
	}
	c.state, c.again = to, false
	c.max, c.quiet = 0, 0
	if !s.used {
		// There are fewer calls than the limit, and these may be too many already. The search
		// begins with about as many, once a window has measured that.
		c.ref.limit = 0
		c.limit = clamp(float64(s.peak) * 3 / 4)
		return
	}
	c.note(s)
	c.knee = float64(s.limit)
	c.from(s)
}

// from takes the next step of a search, away from s.
func (c *climber) from(s sample) {
	c.ref = s
	if c.state == rising {
		c.limit = clamp(2 * float64(s.limit))
	} else {
		c.limit = clamp(float64(s.limit) / 2)
	}
}

// recall is for a server that has become as fast again as it was before it became slower. A search
// upwards then begins with the limit of that time.
func (c *climber) recall(s sample) {
	if c.state == rising && s.cost < c.formerCost*band {
		c.limit = max(c.limit, clamp(c.former))
	}
	c.former, c.formerCost = 0, 0
}

// rise doubles the limit as long as goodput grows by a fair share of that.
func (c *climber) rise(s sample) {
	if !s.used {
		if c.ref.limit != 0 && !s.idle && s.peak < s.limit {
			c.found(c.knee, float64(s.peak)) // there are no more calls than that
		}
		return
	}
	c.note(s)
	if c.ref.limit == 0 {
		c.knee = c.max * c.quiet // which is s.limit, unless less time has been seen before
		c.from(s)
		return
	}
	gain := s.rate / c.ref.rate
	doublings := math.Log2(float64(s.limit) / float64(c.ref.limit))
	switch {
	case gain > math.Exp2(riseShare*c.price(s)*doublings):
		// Goodput that stops growing all of a sudden does so here.
		c.knee = min(gain*float64(c.ref.limit), float64(s.limit))
		c.again = false
		if s.limit < MaxLimit {
			c.from(s)
			return
		}
	case !c.again:
		c.again = true // it may have been noise
		return
	case s.rate < holdShare*c.ref.rate:
		c.centre = float64(c.ref.limit)
		c.search(falling, s) // the server is not what it was
		return
	}
	c.found(c.knee, float64(s.limit))
}

// fall halves the limit as long as goodput stays what it was.
func (c *climber) fall(s sample) {
	if !s.used {
		c.settle(float64(s.limit)) // there are fewer calls than that
		return
	}
	if c.ref.limit != 0 && s.rate > passedGain*c.ref.rate {
		c.settle(c.centre) // it was noise
		return
	}
	c.note(s)
	if c.ref.limit == 0 || s.rate > holdShare*c.max && s.limit > minLimit {
		c.from(s)
		return
	}
	if s.cost > unqueued*c.ref.cost {
		c.base = max(c.base, baseShare*s.cost) // no queue of ours makes it slow
	}
	c.found(float64(s.limit), float64(c.ref.limit))
}

// note keeps what a search needs to know in the end.
func (c *climber) note(s sample) {
	c.max = max(c.max, s.rate)
	if each := float64(s.limit) / s.rate; c.quiet == 0 || each < c.quiet {
		c.quiet = each
	}
	c.floor(s.cost)
}

// found ends a search, at a limit between low and high. By Little's law the highest goodput takes
// so many calls at once, if none of them queues. Their time follows from goodput. A round trip
// would not do, as it leaves out what a call takes on this side.
func (c *climber) found(low, high float64) {
	c.settle(min(max(headroom*c.max*c.quiet, low), max(low, high)))
}
