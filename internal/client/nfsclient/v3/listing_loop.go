package v3

// loopGuard notices that a listing runs in circles of any size, in constant memory: it remembers one
// place, and replaces it by a later one after twice as many steps each time (R. P. Brent, "An improved
// Monte Carlo factorization algorithm", 1980).
type loopGuard struct {
	mark         uint64
	steps, limit uint64
}

// back reports whether cookie, a page's last, is the one remembered.
func (g *loopGuard) back(cookie uint64) bool {
	if cookie == g.mark {
		return true
	}
	if g.steps++; g.steps > g.limit {
		g.mark, g.steps, g.limit = cookie, 0, 2*g.limit+1
	}
	return false
}
