package readahead

import "time"

const (
	// levels bounds a climb: 1<<(levels-1) units in flight.
	levels = 10
	// After probePause epochs the level above, or the one below, is tried again.
	probePause = 16
	// A level is enough if it moves enoughOf16 sixteenths of what the best does.
	enoughOf16 = 15
)

// climb finds out how many READs (units) in flight pay, by the bytes that come in a second.
// The number doubles as long as that brings more bytes, and the smallest number that is
// nearly as good as the best is kept. It comes to the bandwidth times the delay, and does
// not rely on the shortest delay ever seen: that of a file server's cache.
//
// With a far server climbing would take seconds, and so it opens first. While reads have to
// wait, and units do not wait for each other, the number doubles once in a unit's time.
// That it suffices shows a unit's time later: it may become four times what is needed. When
// units begin to wait for each other, it climbs.
//
// Bytes that came while no read had to wait say nothing about the number, and do not count.
// The owner's mutex guards a climb.
type climb struct {
	level int
	rates [levels]float64 // bytes per second at each level; 0: not known

	opening bool // the rates are not looked at yet

	bytes  int64     // moved in this epoch
	start  time.Time // when the first window of this epoch had been moved
	waited bool      // a read had to wait since then
	quiet  int       // epochs since the last look around
	up     bool      // where that was
}

func (g *climb) units() int { return 1 << g.level }

// moved counts n bytes that have come or gone; unit is the size of one unit, and
// most the largest number that is allowed. What is in flight together comes
// together, so that the time between two units says little: an epoch is three
// times what may be in flight and what is being waited for, one part to settle
// in, and two to be measured.
func (g *climb) moved(n int, unit, most int, waited bool) {
	window := int64(unit)*int64(g.units()) + int64(max(n, unit))
	before := g.bytes
	g.bytes += int64(n)
	g.waited = g.waited || waited
	switch {
	case before < window && g.bytes >= window:
		g.bytes, g.start, g.waited = window, time.Now(), false
	case before >= window && g.bytes >= 3*window:
		if took := time.Since(g.start); g.waited && took > 0 {
			g.rate(float64(g.bytes-window)/took.Seconds(), most)
		}
		g.bytes, g.waited = 0, false
	}
}

// opened takes note of a unit that was sent at level, when as many were in flight, and
// took so long; quickest is the shortest time that any unit has taken.
func (g *climb) opened(level int, took, quickest time.Duration, most int) {
	if !g.opening || level != g.level {
		return // sent when fewer were in flight
	}
	g.opening = took >= farRead && quickest >= farRead && took <= queuedAhead*quickest && level < log2(most)
	if g.opening && g.waited {
		g.level, g.waited = level+1, false
	}
}

// restart begins the epoch anew.
func (g *climb) restart() { g.bytes = 0 }

// found returns the best level, if the one above is known to be no better.
func (g *climb) found() (level int, ok bool) {
	level = g.best()
	return level, level+1 < levels && g.rates[level+1] > 0
}

// rate takes note of what the present level moves, and chooses the next one.
func (g *climb) rate(r float64, most int) {
	if old := g.rates[g.level]; old > 0 {
		r = (r + old) / 2
	}
	g.rates[g.level] = r
	best := g.best()
	top := min(levels-1, log2(most))
	g.quiet++
	switch {
	case best < top && g.rates[best+1] == 0:
		g.level = best + 1
	case g.quiet >= probePause:
		g.quiet, g.up = 0, !g.up
		g.level = best + 1
		if !g.up || best >= top {
			g.level = best - 1
		}
	default:
		g.level = best
	}
	g.level = max(0, min(g.level, top))
}

// best is the lowest level that is enough.
func (g *climb) best() int {
	var most float64
	for _, r := range g.rates {
		most = max(most, r)
	}
	for level, r := range g.rates {
		if r > 0 && r*16 >= most*enoughOf16 {
			return level
		}
	}
	return g.level
}
