package localio

import (
	"errors"
	"maps"
	"slices"
)

// Session is a client that is local.
type Session struct {
	Client string // as peer.Conn has it: of the connection that it is bound to
	User   string // as peer.Conn has it
	UID    uint32
	PID    int32
	Files  int // that it has, or that are being opened for it
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
		conn := c.conn.Load()
		all = append(all, Session{Client: conn.Client, User: conn.User, UID: c.peer.UID, PID: c.peer.PID, Files: files})
	}
	return all
}

var errDropped = errors.New("dropped by the administrator")

// Drop ends the sessions for whose client and user, as in Session, which is true, and
// returns how many there were. Their files are taken back when it returns. which is called
// with the service locked, and must not call it.
func (s *Service) Drop(which func(client, user string) bool) int {
	s.mu.Lock()
	var all []*client
	for c := range s.bound {
		if conn := c.conn.Load(); which(conn.Client, conn.User) {
			all = append(all, c)
		}
	}
	s.mu.Unlock()
	for _, c := range all {
		c.end(errDropped)
	}
	return len(all)
}
