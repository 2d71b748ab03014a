package oncrpc

import (
	"net"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc/internal/budget"
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

// Drop closes the connections for which which returns true, and returns their number.
// Their calls under way end as if the clients had gone. The clients may connect again. The
// server is locked while which runs: it must not call the server.
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

// Clients share the number of connections: see DefaultMaxConns.

// mayHave reports whether one more connection is within a client's share. s.mu is held.
func (s *Server) mayHave(share string) bool {
	held, free := s.shares[share], s.o.MaxConns-(len(s.conns)-s.strangers)
	return held < minShareConns || budget.Fair(int64(held), 1, int64(free))
}

// roomFor reports whether there is room for one more connection of a client. It makes room
// if it can. s.mu is held.
func (s *Server) roomFor(share string) bool {
	switch {
	case !s.mayHave(share):
		return s.evict(func(sc *serverConn) bool { return sc.share == share })
	case len(s.conns) >= s.o.MaxConns:
		return s.evict(func(*serverConn) bool { return true })
	}
	return true
}

// join counts sc among the connections that are not admitted, if it is one of them. It
// returns false if there are too many.
func (s *Server) join(sc *serverConn) bool {
	if s.admits(sc.state) {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.strangers >= max(s.o.MaxConns/strangerShare, minShareConns) && !s.evict(func(o *serverConn) bool { return o.stranger }) {
		return false
	}
	if _, here := s.conns[sc]; here {
		sc.stranger = true
		s.strangers++
	}
	return true
}

// remove takes sc out of the connections, if it is among them. s.mu is held.
func (s *Server) remove(sc *serverConn) {
	if _, here := s.conns[sc]; !here {
		return
	}
	delete(s.conns, sc)
	if s.shares[sc.share]--; s.shares[sc.share] == 0 {
		delete(s.shares, sc.share)
	}
	if sc.stranger {
		s.strangers--
	}
}

// evict closes one connection for which which returns true and that has no call under way:
// the first in the order of before. It returns false if there is none. s.mu is held.
func (s *Server) evict(which func(*serverConn) bool) bool {
	var victim *serverConn
	var since time.Time
	for sc := range s.conns {
		t, ok := sc.silentSince()
		if !ok || !which(sc) {
			continue
		}
		if victim == nil || s.before(sc, t, victim, since) {
			victim, since = sc, t
		}
	}
	if victim == nil {
		return false
	}
	s.stats.evicted.Add(1)
	s.remove(victim)
	victim.fail(errEvicted)
	return true
}

// before reports whether sc, silent since t, is to be closed rather than o. The order: what
// is not admitted, then what is of the client with most connections, then what has been
// silent longest. s.mu is held.
func (s *Server) before(sc *serverConn, t time.Time, o *serverConn, since time.Time) bool {
	switch {
	case sc.stranger != o.stranger:
		return sc.stranger
	case s.shares[sc.share] != s.shares[o.share]:
		return s.shares[sc.share] > s.shares[o.share]
	}
	return t.Before(since)
}
