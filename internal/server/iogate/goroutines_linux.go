package iogate

import "sync"

// goroutines make calls. There are as many as places: none waits for another.
type goroutines struct {
	calls chan *call
	n     int
	all   sync.WaitGroup
}

func startGoroutines(n int) *goroutines {
	g := &goroutines{calls: make(chan *call, n), n: n}
	for range n {
		g.all.Go(g.work)
	}
	return g
}

func (g *goroutines) work() {
	for c := range g.calls {
		c.n, c.err = c.op.do(c.fd, c.p, c.off)
		c.done <- struct{}{}
	}
}

func (g *goroutines) start(c *call) { g.calls <- c }

func (g *goroutines) threads() threads { return threads{n: g.n} }

func (g *goroutines) close() error {
	close(g.calls)
	g.all.Wait()
	return nil
}
