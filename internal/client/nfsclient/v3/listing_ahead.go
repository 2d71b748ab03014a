package v3

import (
	"context"
	"errors"

	"github.com/nfsbox/nfsbox/vfs"
)

// ahead fetches a page while the one before it is delivered. Its goroutine starts with the first such
// page and runs to the end of the listing. At most one page is in flight; next takes it, or stop
// drops it.
type ahead struct {
	ask    chan order // nil: not started
	done   chan error // the result of the order
	cancel context.CancelFunc
	busy   bool // an order was given and its page not taken
	at     int  // which of l.pages is delivered; the other is in flight
}

// order is a page to fetch.
type order struct {
	pos vfs.Pos
	p   *page
}

// lookAhead begins to fetch the page after p, if there is one.
func (l *listing) lookAhead(p *page) {
	a := &l.ahead
	if p.eof || a.busy || l.fs.opt.Plain {
		return
	}
	if a.ask == nil {
		var ctx context.Context
		ctx, a.cancel = context.WithCancel(l.ctx)
		a.ask, a.done = make(chan order, 1), make(chan error, 1)
		go l.work(ctx)
	}
	a.busy = true
	a.ask <- order{vfs.Pos{Cookie: p.last, Verf: p.verf}, &l.pages[1-a.at]}
}

// work fetches ordered pages. Between an order and its result, the pager and the ordered page belong
// to its goroutine.
func (l *listing) work(ctx context.Context) {
	defer close(l.ahead.done)
	for o := range l.ahead.ask {
		l.ahead.done <- l.fetch(ctx, o.pos, o.p)
	}
}

// next returns the next page: the one in flight, or one that it fetches.
func (l *listing) next() (*page, error) {
	a := &l.ahead
	p := &l.pages[1-a.at]
	var err error
	if a.busy {
		err, a.busy = <-a.done, false
	} else {
		err = l.fetch(l.ctx, l.pos, p)
	}
	switch {
	case errors.Is(err, vfs.ErrBadCookie):
		err = l.recover(p, err)
	case err == nil && l.still(p):
		err = l.plusInstead(p)
	}
	if err != nil {
		return nil, err
	}
	if err := l.ctx.Err(); err != nil {
		p.release()
		return nil, err
	}
	a.at = 1 - a.at
	return p, nil
}

// stop ends the fetching, waits for the goroutine, and releases the page in flight.
func (l *listing) stop() {
	a := &l.ahead
	if a.ask == nil {
		return
	}
	a.cancel()
	close(a.ask)
	for err := range a.done {
		if err == nil {
			l.pages[1-a.at].release()
		}
	}
}
