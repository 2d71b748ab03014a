// Package crowd bounds the connections of an HTTP server, and shares them out among its clients.
package crowd

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// Crowd bounds connections. At the bound a new connection displaces one of the client
// with the most. If that client does not have at least two more than the new
// connection's, the new one is closed instead. So no client can keep another out. The
// connection that is displaced is the oldest without a request under way, or the oldest
// if all have one. All methods may be called concurrently.
type Crowd struct {
	most int
	name func(net.Conn) string // of the client

	mu   sync.Mutex
	of   map[net.Conn]*list.Element // in held
	held map[string]*list.List      // by client, of *seat, the oldest first
}

// seat is a connection that is counted.
type seat struct {
	nc   net.Conn
	who  string
	busy bool // it has a request under way, or one that has begun to come
}

// New returns a Crowd that allows most connections at once, at least one. name returns
// the client of a connection. It is called when the server has accepted the connection,
// and must not read or write. For TLS it gets the connection below.
func New(most int, name func(net.Conn) string) *Crowd {
	return &Crowd{most: max(most, 1), name: name, of: make(map[net.Conn]*list.Element), held: make(map[string]*list.List)}
}

// State is for the hook of an http.Server (ConnState). It returns the connection that the
// hook must close to stay within the bound, nc or another one, or nil. The server notices
// when it next reads or writes there.
func (c *Crowd) State(nc net.Conn, s http.ConnState) (out net.Conn) {
	if s == http.StateNew {
		if out = c.add(nc); out != nil {
			out = below(out)
		}
		return out
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.of[nc]
	switch {
	case e == nil: // it was displaced
	case s == http.StateActive, s == http.StateIdle:
		e.Value.(*seat).busy = s == http.StateActive
	default:
		c.remove(e)
	}
	return nil
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
	mine := c.held[s.who]
	if mine == nil {
		mine = list.New() // entered in held with its first connection
	}
	if len(c.of) >= c.most {
		greedy := c.greediest()
		if greedy.Len() < mine.Len()+2 {
			return nc
		}
		e := oldest(greedy)
		out = e.Value.(*seat).nc
		c.remove(e)
	}
	c.held[s.who] = mine
	c.of[nc] = mine.PushBack(s)
	return out
}

// greediest returns the connections of the client with the most. c.mu is held, and there
// is a client.
func (c *Crowd) greediest() (most *list.List) {
	for _, held := range c.held {
		if most == nil || held.Len() > most.Len() {
			most = held
		}
	}
	return most
}

// oldest returns the oldest connection without a request under way, or the oldest if all
// have one.
func oldest(held *list.List) *list.Element {
	for e := held.Front(); e != nil; e = e.Next() {
		if !e.Value.(*seat).busy {
			return e
		}
	}
	return held.Front()
}

// remove forgets a connection. c.mu is held.
func (c *Crowd) remove(e *list.Element) {
	s := e.Value.(*seat)
	delete(c.of, s.nc)
	held := c.held[s.who]
	if held.Remove(e); held.Len() == 0 {
		delete(c.held, s.who)
	}
}
