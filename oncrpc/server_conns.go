package oncrpc

import (
	"net"
	"time"
)

// ConnInfo is a connection of a server, as it is now.
type ConnInfo struct {
	Remote, Local net.Addr
	Opened        time.Time
	Active        time.Time // when something was last read or answered
	Calls         uint64    // read since it was opened
	UnderWay      int       // of them, not yet answered
	BytesIn       uint64    // read from it, since it was opened
	BytesOut      uint64    // written to it
}

// Conns returns the connections that are open now, in no order.
func (s *Server) Conns() []ConnInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]ConnInfo, 0, len(s.conns))
	for sc := range s.conns {
		all = append(all, sc.info())
	}
	return all
}

func (sc *serverConn) info() ConnInfo {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return ConnInfo{
		Remote: sc.remote, Local: sc.local, Opened: sc.opened, Active: sc.active, Calls: sc.total, UnderWay: sc.calls,
		BytesIn: sc.bytesIn.Load(), BytesOut: sc.bytesOut.Load(),
	}
}

// Drop closes the connections of which is true, and answers how many. Their calls
// under way end as if the clients had gone; nothing keeps these from coming back.
// which is called with the server locked, and must not call it.
func (s *Server) Drop(which func(remote net.Addr) bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sc := range s.conns {
		if which(sc.remote) {
			sc.fail(errDropped)
			n++
		}
	}
	return n
}
