package crowd

import (
	"context"
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
// all. A client that has as many as others displaces its own, and no other's.
func TestCrowd(t *testing.T) {
	c, come := newRoom(4)
	var greedy []*place
	for range 4 {
		greedy = append(greedy, come("greedy"))
	}
	if p := come("greedy"); p.closed != 0 || greedy[0].closed != 1 {
		t.Error("the fifth of one client does not take the place of its first")
	} else {
		greedy = append(greedy[1:], p)
	}
	first, second := come("honest"), come("honest")
	if first.closed+second.closed > 0 || greedy[0].closed != 1 || greedy[1].closed != 1 || greedy[2].closed+greedy[3].closed > 0 {
		t.Errorf("the greedy one's: %+v %+v %+v %+v, the honest one's: %+v %+v", greedy[0], greedy[1], greedy[2], greedy[3], first, second)
	}
	third, last := come("honest"), come("greedy")
	if first.closed != 1 || second.closed+third.closed != 0 || greedy[2].closed != 1 || greedy[3].closed+last.closed != 0 {
		t.Error("a place of a client that has as many is taken")
	}
	for _, p := range append(greedy, first, second, third, last) { // those that were closed here, too
		c.State(p, http.StateClosed)
	}
	if c.Len() > 0 || len(c.held) > 0 || c.seats.Len() > 0 {
		t.Errorf("left: %v, %v", c.of, c.held)
	}
}

// serves has a request served on p.
func serves(c *Crowd, p *place) (done func()) {
	return c.Serves(Context(context.Background(), p))
}

// TestCrowdSpares: a connection on which a request is served goes when there is no other, and
// one that was served of late goes late.
func TestCrowdSpares(t *testing.T) {
	c, come := newRoom(4)
	one, two, three, four := come("greedy"), come("greedy"), come("greedy"), come("greedy")
	serves(c, one)
	done := serves(c, two)
	serves(c, three)
	done()
	for i, goes := range []*place{four, two} {
		if come("honest"); goes.closed != 1 || one.closed+two.closed+three.closed+four.closed != i+1 {
			t.Errorf("newcomer %d: %d %d %d %d were closed", i, one.closed, two.closed, three.closed, four.closed)
		}
	}
	c, come = newRoom(2)
	one, two = come("greedy"), come("greedy")
	serves(c, one)
	serves(c, two)
	if come("honest"); one.closed != 1 || two.closed != 0 {
		t.Errorf("with a request on all: %d %d were closed", one.closed, two.closed)
	}
}

// TestCrowdWaits: connections that wait, however many clients have one each, keep no client
// out: not when bytes have come of a request, nor between requests. What is served stays.
func TestCrowdWaits(t *testing.T) {
	c, come := newRoom(3)
	half, served, silent := come("a"), come("b"), come("c")
	c.State(half, http.StateActive)
	done := serves(c, served)
	if p := come("honest"); half.closed != 1 || served.closed+silent.closed+p.closed != 0 {
		t.Errorf("%d %d %d were closed, and of the newcomer %d", half.closed, served.closed, silent.closed, p.closed)
	}
	if p := come("another"); silent.closed != 1 || served.closed+p.closed != 0 {
		t.Errorf("%d %d were closed, and of the newcomer %d", served.closed, silent.closed, p.closed)
	}
	done()
	come("d")
	if come("e"); served.closed != 0 {
		t.Error("what was served a moment ago goes before what has waited longer")
	}
	if come("f"); served.closed != 1 {
		t.Error("what is served no more keeps its place")
	}
}

// TestCrowdServed: a newcomer does not displace what is served for clients that have no more
// than it.
func TestCrowdServed(t *testing.T) {
	c, come := newRoom(2)
	one, two := come("a"), come("b")
	serves(c, one)
	serves(c, two)
	if p := come("honest"); p.closed != 1 || one.closed+two.closed != 0 {
		t.Errorf("%d %d were closed, and of the newcomer %d", one.closed, two.closed, p.closed)
	}
}

// TestCrowdStrangers: clients whom no rule admits displace nobody, themselves included, and go
// first, whatever they do.
func TestCrowdStrangers(t *testing.T) {
	c, come := newRoom(4)
	one, two, greedy, more := come(""), come(""), come("greedy"), come("greedy")
	serves(c, one)
	serves(c, two)
	if p := come(""); p.closed != 1 || one.closed+two.closed+greedy.closed+more.closed != 0 {
		t.Error("a stranger displaces somebody")
	}
	if p := come("greedy"); one.closed != 1 || p.closed+two.closed+greedy.closed != 0 {
		t.Error("a stranger's connection does not go first")
	}
	if p := come("honest"); two.closed != 1 || p.closed+greedy.closed != 0 {
		t.Error("a stranger's connection does not go first")
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
