package daemon

import (
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
)

// crowd divides the connections of a server for operators among its clients. At the
// bound a newcomer takes the place of the oldest connection of the client that has
// most, if that has at least two more than the newcomer; else the newcomer is closed.
// So one user's connections, however many, keep no other user out. Its methods may be
// called at once.
type crowd struct {
	most int
	name func(net.Conn) string // of the client

	mu   sync.Mutex
	of   map[net.Conn]string
	held map[string][]net.Conn // by client, the oldest first
}

func newCrowd(most int, name func(net.Conn) string) *crowd {
	return &crowd{most: most, name: name, of: make(map[net.Conn]string), held: make(map[string][]net.Conn)}
}

// state is the hook of an http.Server. It finds a connection that was closed here at
// its next read or write.
func (c *crowd) state(nc net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		if out := c.add(nc); out != nil {
			_ = out.Close()
		}
	case http.StateClosed, http.StateHijacked:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.remove(nc)
	}
}

// add counts nc and returns the connection that has to go for it, if there is one: it
// may be nc itself.
func (c *crowd) add(nc net.Conn) (out net.Conn) {
	who := c.name(nc)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.of) >= c.most {
		var greedy string
		for name, held := range c.held {
			if len(held) > len(c.held[greedy]) {
				greedy = name
			}
		}
		if len(c.held[greedy]) < len(c.held[who])+2 {
			return nc
		}
		out = c.held[greedy][0]
		c.remove(out)
	}
	c.of[nc] = who
	c.held[who] = append(c.held[who], nc)
	return out
}

// remove forgets nc, if it is counted. c.mu is held.
func (c *crowd) remove(nc net.Conn) {
	who, ok := c.of[nc]
	if !ok {
		return
	}
	delete(c.of, nc)
	rest := slices.DeleteFunc(c.held[who], func(other net.Conn) bool { return other == nc })
	if c.held[who] = rest; len(rest) == 0 {
		delete(c.held, who)
	}
}

// client names whose a connection is: a user of this host, or an address.
func (d *daemon) client(nc net.Conn) string {
	return oncrpc.ShareOf(nfsserver.PeerOf(d.users, nc, nc.RemoteAddr(), nc.LocalAddr()))
}
