package readahead

import "time"

const (
	// levels bounds a gauge: 1<<(levels-1) units in flight.
	levels = 10
	// probePause is how many epochs pass before a gauge looks whether the level
	// above, or the one below, does better by now.
	probePause = 16
	// A level is enough if it moves enoughOf16 sixteenths of what the best does.
	enoughOf16 = 15
)

// gauge finds out how many units (READs or WRITEs) in flight pay. It is a climb
// by what is moved in a second: the number doubles as long as that brings more,
// and the smallest that is nearly as good as the best is kept. That is the
// bandwidth times the delay, in units, without a belief in the shortest delay
// ever seen, which on a file server is that of its cache.
//
// Where the way is long it would climb for seconds. There it opens first: while somebody
// has to wait, and a unit does not take longer for all that are under way, the number
// doubles, once in the time that one takes. That it suffices is known that much later, so
// that it may become four times as large as is needed. From where units begin to wait for
// each other it climbs.
//
// What was moved while nobody had to wait says nothing about the number, and is
// not counted. The owner's mutex guards a gauge.
type gauge struct {
	level int
	rates [levels]float64 // bytes per second at each level; 0: not known

	opening bool // the rates are not looked at yet

	bytes  int64     // moved in this epoch
	start  time.Time // when the first window of this epoch had been moved
	waited bool      // somebody had to wait since then
	quiet  int       // epochs since the last look around
	up     bool      // where that was
}

// units is how many may be in flight.
func (g *gauge) units() int { return 1 << g.level }

// moved counts n bytes that have come or gone; unit is the size of one unit, and
// most the largest number that is allowed. What is in flight together comes
// together, so that the time between two units says little: an epoch is three
// times what may be in flight and what is being waited for, one part to settle
// in, and two to be measured.
func (g *gauge) moved(n int, unit, most int, waited bool) {
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
func (g *gauge) opened(level int, took, quickest time.Duration, most int) {
	if !g.opening || level != g.level {
		return // sent when fewer were in flight
	}
	g.opening = took >= farRead && quickest >= farRead && took <= queuedAhead*quickest && level < log2(most)
	if g.opening && g.waited {
		g.level, g.waited = level+1, false
	}
}

// restart begins the epoch anew.
func (g *gauge) restart() { g.bytes = 0 }

// found returns the best level, if the one above is known to be no better.
func (g *gauge) found() (level int, ok bool) {
	level = g.best()
	return level, level+1 < levels && g.rates[level+1] > 0
}

// rate takes note of what the present level moves, and chooses the next one.
func (g *gauge) rate(r float64, most int) {
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
func (g *gauge) best() int {
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
