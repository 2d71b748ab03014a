package nlm

import (
	"errors"
	"net"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc"
)

// home is where clients come from, whatever they call themselves: an address, or of
// IPv6 a network of 64 bits, or a user of this host. What is divided among clients is divided among homes,
// for a machine can call itself what it likes. It is guarded by Service.mu.
type home struct {
	clients  int
	locks    int // ranges
	holdings int // owners of locks, each counted once a file
	waits    int
	shares   int
	results  int // that wait to be sent
	calling  int // calls to it that are under way
}

// homeOf returns the home of an address, or makes it. s.mu is held.
func (s *Service) homeOf(a net.Addr) *home {
	share := oncrpc.ShareOf(a)
	h := s.homes[share]
	if h == nil {
		h = &home{}
		s.homes[share] = h
	}
	return h
}

// endHome forgets the home of an address if nobody is left there. s.mu is held.
func (s *Service) endHome(a net.Addr) {
	if share := oncrpc.ShareOf(a); s.homes[share].clients == 0 {
		delete(s.homes, share)
	}
}

var errShare = errors.New("nlm: the client has its share of locks")

// sayFull tells the log why c has no more locks, at most once in a fullPause.
func (s *Service) sayFull(c *client, why error) {
	s.mu.Lock()
	now := time.Now()
	soon := now.Before(s.fullAgain)
	if !soon {
		s.fullAgain = now.Add(fullPause)
	}
	s.mu.Unlock()
	if !soon {
		s.o.Log.Warn("a lock is refused for want of room", "client", c.key.name, "address", c.key.from(), "why", why)
	}
}

// roomFor reports whether h may have one more lock, and for another owner or in
// another file if owner is true. s.mu is held.
func (s *Service) roomFor(h *home, owner bool) bool {
	return h.locks < min(maxClientLocks, maxLocks-s.locks) && (!owner || h.holdings < s.o.MaxHoldings)
}
