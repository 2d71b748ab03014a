package localio

import (
	"errors"
	"maps"
	"slices"
)

// Session is a client that is local.
type Session struct {
	Client string // as peer.Conn has it: of the connection that it is bound to
	UID    uint32
	PID    int32
	Files  int // that it has, or is about to
}

// Sessions returns the clients that are local now, in no order.
func (s *Service) Sessions() []Session {
	s.mu.Lock()
	bound := slices.Collect(maps.Keys(s.bound))
	s.mu.Unlock()
	all := make([]Session, 0, len(bound))
	for _, c := range bound {
		c.mu.Lock()
		files := len(c.slots) - len(c.free)
		c.mu.Unlock()
		all = append(all, Session{Client: c.conn.Load().Client, UID: c.peer.UID, PID: c.peer.PID, Files: files})
	}
	return all
}

var errDropped = errors.New("dropped by the administrator")

// Drop ends the sessions of a client, whose files are taken back when it returns, and
// answers how many there were.
func (s *Service) Drop(name string) int {
	s.mu.Lock()
	var all []*client
	for c := range s.bound {
		if c.conn.Load().Client == name {
			all = append(all, c)
		}
	}
	s.mu.Unlock()
	for _, c := range all {
		c.end(errDropped)
	}
	return len(all)
}
