// Package crowd bounds the connections of an HTTP server, and shares them out among its clients.
package crowd

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// Crowd bounds connections. At the bound a new one displaces another, and a connection
// that waits holds no place: one on which no request is served, be it new, silent, or with
// half a request. The one that goes is, in this order:
//
//  1. a stranger's;
//  2. of the client with the most, if it has more than the newcomer's client has with the
//     new one: what has waited longest there, or the oldest if all are served;
//  3. what has waited longest of all clients that have no fewer than the newcomer's, its
//     own included;
//  4. the new one itself.
//
// So a client that comes with its first connection finds a place unless all are served,
// and no client loses a served connection to one that has as many. A stranger, whom no rule
// admits, displaces nobody. All methods may be called concurrently.
type Crowd struct {
	most int
	name func(net.Conn) string // of the client

	mu    sync.Mutex
	of    map[net.Conn]*list.Element // in seats
	held  map[string]int             // connections, by client
	seats list.List                  // of *seat; in front what has been new, or served, least lately
}

// seat is a connection that is counted.
type seat struct {
	nc     net.Conn
	who    string // stranger, or the client
	served int    // requests under way that were admitted
}

// stranger is the name of all clients whom no rule admits: together they are one.
const stranger = ""

// New returns a Crowd that allows most connections at once, at least one. name returns
// the client of a connection, and "" for one whom no rule admits. It is called when the
// server has accepted the connection, and must not read or write. For TLS it gets the
// connection below.
func New(most int, name func(net.Conn) string) *Crowd {
	return &Crowd{most: max(most, 1), name: name, of: make(map[net.Conn]*list.Element), held: make(map[string]int)}
}

// State is for the hook of an http.Server (ConnState). It returns the connection that the
// hook must close to stay within the bound, nc or another one, or nil. The server notices
// when it next reads or writes there.
func (c *Crowd) State(nc net.Conn, s http.ConnState) (out net.Conn) {
	switch s {
	case http.StateNew:
		if out = c.add(nc); out != nil {
			out = below(out)
		}
	case http.StateHijacked, http.StateClosed:
		c.mu.Lock()
		defer c.mu.Unlock()
		if e := c.of[nc]; e != nil { // else it was displaced
			c.remove(e)
		}
	default: // StateActive says that bytes have come: half a request's, maybe, or a stranger's
	}
	return out
}

// key is the key of a connection in the context of its requests.
type key struct{}

// Context is for the hook of an http.Server (ConnContext), so that Serves finds the
// connection.
func Context(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, key{}, nc)
}

// Serves says that a request is served, until done is called. ctx is the request's. Without
// a connection of c in it nothing is done.
func (c *Crowd) Serves(ctx context.Context) (done func()) {
	nc, _ := ctx.Value(key{}).(net.Conn)
	c.serve(nc, 1)
	return func() { c.serve(nc, -1) }
}

// serve counts a request as begun (1) or as ended (-1). From both on its connection is the
// last to have waited.
func (c *Crowd) serve(nc net.Conn, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.of[nc]; e != nil {
		e.Value.(*seat).served += n
		c.seats.MoveToBack(e)
	}
}

// Len is how many connections are counted.
func (c *Crowd) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.of)
}

// below returns the connection below TLS, or nc. Closing TLS would send an alert, and wait
// for a client that does not read.
func below(nc net.Conn) net.Conn {
	if over, ok := nc.(interface{ NetConn() net.Conn }); ok {
		return over.NetConn()
	}
	return nc
}

// add counts nc and returns the connection to close for it, if any: it may be nc itself.
func (c *Crowd) add(nc net.Conn) (out net.Conn) {
	s := &seat{nc: nc, who: c.name(below(nc))}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[nc] = c.seats.PushBack(s)
	c.held[s.who]++
	if len(c.of) <= c.most {
		return nil
	}
	e := c.displaced(s)
	out = e.Value.(*seat).nc
	c.remove(e)
	return out
}

// displaced is the connection that goes for a new one, s, which is counted already. c.mu is
// held.
func (c *Crowd) displaced(s *seat) *list.Element {
	if s.who == stranger {
		return c.of[s.nc]
	}
	pays, most := c.greediest()
	greed := pays == stranger || most > c.held[s.who]
	var served *list.Element
	for e := c.seats.Front(); e != nil; e = e.Next() {
		x := e.Value.(*seat)
		switch {
		case x == s, greed && x.who != pays, !greed && c.held[x.who] < c.held[s.who]:
		case x.served == 0:
			return e
		case greed && served == nil:
			served = e
		}
	}
	if served == nil {
		return c.of[s.nc]
	}
	return served
}

// greediest is the client with the most connections, and how many: strangers, if there is one. c.mu
// is held.
func (c *Crowd) greediest() (who string, most int) {
	if n := c.held[stranger]; n > 0 {
		return stranger, n
	}
	for name, n := range c.held {
		if n > most {
			who, most = name, n
		}
	}
	return who, most
}

// remove forgets a connection. c.mu is held.
func (c *Crowd) remove(e *list.Element) {
	s := c.seats.Remove(e).(*seat)
	delete(c.of, s.nc)
	if c.held[s.who]--; c.held[s.who] == 0 {
		delete(c.held, s.who)
	}
}
