package crowd

import (
	"net"
	"net/http"
	"testing"
)

// place is a connection of a client, which counts how often it was closed.
type place struct {
	net.Conn
	who    string
	closed int
}

func (p *place) Close() error { p.closed++; return nil }

// secured is a connection over another one; to close it is not what is wanted.
type secured struct {
	net.Conn
	over *place
}

func (s secured) NetConn() net.Conn { return s.over }

// newRoom is a Crowd of most connections, and how one comes.
func newRoom(most int) (c *Crowd, come func(who string) *place) {
	c = New(most, func(nc net.Conn) string { return nc.(*place).who })
	return c, func(who string) *place {
		p := &place{who: who}
		if out := c.State(p, http.StateNew); out != nil {
			_ = out.Close() // it counts
		}
		return p
	}
}

// TestCrowd: a client that has nothing finds a place, though another one had taken them
// all. No client loses one to a client that has as many.
func TestCrowd(t *testing.T) {
	c, come := newRoom(4)
	var greedy []*place
	for range 4 {
		greedy = append(greedy, come("greedy"))
	}
	if p := come("greedy"); p.closed != 1 {
		t.Error("a fifth of one client is let in")
	}
	first, second := come("honest"), come("honest")
	if first.closed+second.closed > 0 || greedy[0].closed != 1 || greedy[1].closed != 1 || greedy[2].closed+greedy[3].closed > 0 {
		t.Errorf("the greedy one's: %+v %+v %+v %+v, the honest one's: %+v %+v", greedy[0], greedy[1], greedy[2], greedy[3], first, second)
	}
	if a, b := come("honest"), come("greedy"); a.closed != 1 || b.closed != 1 {
		t.Error("a place of a client that has as many is taken")
	}
	for _, p := range append(greedy, first, second) { // those that were closed here, too
		c.State(p, http.StateClosed)
	}
	if c.Len() > 0 || len(c.held) > 0 {
		t.Errorf("left: %v, %v", c.of, c.held)
	}
}

// TestCrowdSpares: a connection with a request under way goes when there is no other.
func TestCrowdSpares(t *testing.T) {
	c, come := newRoom(4)
	one, two, three, four := come("greedy"), come("greedy"), come("greedy"), come("greedy")
	for _, p := range []*place{one, two, three} {
		c.State(p, http.StateActive)
	}
	c.State(two, http.StateIdle)
	for i, goes := range []*place{two, four} {
		if come("honest"); goes.closed != 1 || one.closed+two.closed+three.closed+four.closed != i+1 {
			t.Errorf("newcomer %d: %d %d %d %d were closed", i, one.closed, two.closed, three.closed, four.closed)
		}
	}
	c, come = newRoom(2)
	one, two = come("greedy"), come("greedy")
	c.State(one, http.StateActive)
	c.State(two, http.StateActive)
	if come("honest"); one.closed != 1 || two.closed != 0 {
		t.Errorf("with a request under way on all: %d %d were closed", one.closed, two.closed)
	}
}

// TestCrowdSecured: what has to go is the connection below TLS, which says no goodbye: that
// could take long.
func TestCrowdSecured(t *testing.T) {
	c, _ := newRoom(2)
	greedy := &place{who: "greedy"}
	for _, nc := range []net.Conn{secured{over: greedy}, secured{over: &place{who: "greedy"}}} {
		if c.State(nc, http.StateNew) != nil {
			t.Error("one has to go while there is room")
		}
	}
	if out := c.State(secured{over: &place{who: "honest"}}, http.StateNew); out != greedy {
		t.Errorf("%v has to go", out)
	}
}
