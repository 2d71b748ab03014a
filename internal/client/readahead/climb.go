package readahead

import "time"

const (
	// levels bounds a climb: it never goes beyond 1<<(levels-1) READs in flight.
	levels = 10
	// After probePause epochs the level above, or the one below, is tried again.
	probePause = 16
	// A level is good enough if it moves enoughOf16 sixteenths of what the best one moves.
	enoughOf16 = 15
)

// climb finds out how many READs in flight pay, by the bytes that come in a second. At level n
// there are 1<<n of them. The level rises as long as that brings more bytes. Then the lowest level
// is kept that is nearly as good as the best. That number comes to the bandwidth times the delay.
// Climbing does not rely on the shortest delay ever seen: that of a file server is the delay of
// its cache.
//
// With a far server climbing would take seconds, so the level first rises without it (opening). As
// long as reads have to wait, and READs do not wait for each other, it rises once in the time of a
// READ. That the level suffices shows one such time later. So there may be up to four times as
// many READs as are needed. Once READs wait for each other, opening ends and climbing begins.
//
// Bytes that came while no read had to wait say nothing about the level, and do not count. The
// owner's mutex guards a climb.
type climb struct {
	level int
	rates [levels]float64 // bytes per second at each level; 0: not known

	opening bool // the level rises with each READ's time; rates are not looked at

	bytes  int64     // moved in this epoch
	start  time.Time // when the first window of this epoch had been moved
	waited bool      // a read had to wait since then
	quiet  int       // epochs since another level was tried
	up     bool      // that was the one above
}

// units is how many READs are to be in flight.
func (g *climb) units() int { return 1 << g.level }

// moved counts n bytes that a read has got. unit is the size of a READ, and most is how many READs
// are allowed. READs that are in flight together come together, so the time between two of them
// says little. An epoch is therefore three times what may be in flight and what this read waits
// for. The first third is left out, for the change of level to take effect. The other two are
// measured.
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

// opened takes note of a READ that was sent at level and took so long, while the climb opens.
// quickest is the shortest time that any READ has taken, and most is how many are allowed.
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

// found returns the best level, and whether the level above is known to be no better.
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
