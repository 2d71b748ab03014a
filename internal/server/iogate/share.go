package iogate

import "math"

// settleIn gives l's lanes the units of the cell with the fewest exports. Called
// with mu held.
func (g *Gate) settleIn(l *Lanes) {
	most := min(maxCells, max(1, g.o.Threads/keptShare/int(Classes)))
	var least *cell
	for _, c := range g.cells {
		if least == nil || c.exports < least.exports {
			least = c
		}
	}
	if least == nil || least.exports > 0 && len(g.cells) < most {
		least = new(cell)
		g.cells = append(g.cells, least)
		g.keep()
	}
	least.exports++
	l.cell = least
	for i := range l.lanes {
		l.lanes[i].unit = &least.units[i]
	}
}

// keep shares out anew what is kept. Calls inside stay, so that what is kept
// may be lacking until some have left. Called with mu held.
func (g *Gate) keep() {
	if g.closing != nil {
		return
	}
	if g.kind == None {
		g.fast.Store(math.MaxInt64)
		return
	}
	units := len(g.cells) * int(Classes)
	each := max(1, g.o.Threads/keptShare/max(1, units))
	for _, c := range g.cells {
		for i := range c.units {
			c.units[i].kept = int64(each)
		}
	}
	g.fast.Store(int64(g.o.Threads - units*each))
}

// take takes one of limit places, if one is free.
func (g *Gate) take(limit int64) bool {
	for {
		n := g.inside.Load()
		if n >= limit {
			return false
		}
		if g.inside.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// takeFor takes a place for u, if one is free for it. Called with mu held.
func (g *Gate) takeFor(u *unit) bool {
	for {
		n := g.inside.Load()
		if int64(g.o.Threads)-n <= g.lacking(u) {
			return false
		}
		// ABA is harmless: calls that came meanwhile found fewer than fast inside.
		if g.inside.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// lacking is what all units but u lack.
func (g *Gate) lacking(u *unit) (n int64) {
	for _, c := range g.cells {
		for i := range c.units {
			if &c.units[i] != u {
				n += c.units[i].lacks()
			}
		}
	}
	return n
}
