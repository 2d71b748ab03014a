package daemon

import (
	"net"
	"net/http"
	"testing"
)

// seat is a connection of a client, which counts how often it was closed.
type seat struct {
	net.Conn
	who    string
	closed int
}

func (s *seat) Close() error { s.closed++; return nil }

// TestCrowd: a client that has nothing finds a place, though another one had taken them
// all. No client loses one to a client that has as many.
func TestCrowd(t *testing.T) {
	c := newCrowd(4, func(nc net.Conn) string { return nc.(*seat).who })
	come := func(who string) *seat {
		s := &seat{who: who}
		c.state(s, http.StateNew)
		return s
	}
	var greedy []*seat
	for range 4 {
		greedy = append(greedy, come("greedy"))
	}
	if s := come("greedy"); s.closed != 1 {
		t.Error("a fifth of one client is let in")
	}
	first, second := come("honest"), come("honest")
	if first.closed+second.closed > 0 || greedy[0].closed != 1 || greedy[1].closed != 1 || greedy[2].closed+greedy[3].closed > 0 {
		t.Errorf("the greedy one's: %+v %+v %+v %+v, the honest one's: %+v %+v", greedy[0], greedy[1], greedy[2], greedy[3], first, second)
	}
	if a, b := come("honest"), come("greedy"); a.closed != 1 || b.closed != 1 {
		t.Error("a place of one who has as many is taken")
	}
	for _, s := range append(greedy, first, second) { // those that were closed here, too
		c.state(s, http.StateClosed)
	}
	if len(c.of)+len(c.held) > 0 {
		t.Errorf("left: %v, %v", c.of, c.held)
	}
}
