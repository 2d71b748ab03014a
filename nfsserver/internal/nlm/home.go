package nlm

import (
	"errors"
	"net"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc"
)

// home is where clients come from: an address, or of IPv6 a network of 64 bits, or a user
// of this host. Bounds are divided among homes and not among clients, since a machine can
// use any number of names. It is guarded by Service.mu.
type home struct {
	clients  int
	locks    int // ranges
	holdings int // owners of locks, each counted once a file
	waits    int
	shares   int
	results  int // answers that wait to be sent
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

// endHome forgets the home of an address if it has no clients left. s.mu is held.
func (s *Service) endHome(a net.Addr) {
	if share := oncrpc.ShareOf(a); s.homes[share].clients == 0 {
		delete(s.homes, share)
	}
}

var errShare = errors.New("nlm: the client has its share of locks")

// sayFull logs why c gets no more locks, at most once in a fullPause.
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

// may reports whether a home that holds held of something may have one more. It must have
// less than its bound own, and less than is free of most, where all homes together have
// taken. So one home alone gets half, and however many take what they can, something is
// left for the next.
func may(held, own, taken, most int) bool { return held < min(own, most-taken) }

// roomFor reports whether h may have one more lock. owner says that it is the first of
// its owner in its file, which counts against MaxHoldings. s.mu is held.
func (s *Service) roomFor(h *home, owner bool) bool {
	return may(h.locks, maxClientLocks, s.locks, maxLocks) && (!owner || h.holdings < s.o.MaxHoldings)
}

// mayEnter reports whether h may have one more client. Idle clients do not count against
// its share, since they make room when it is needed, but they count against maxNames and
// maxClients. s.mu is held.
func (s *Service) mayEnter(h *home) bool {
	switch {
	case h.clients >= maxNames, len(s.clients) >= maxClients:
		return false
	case h.clients < fewNames, may(h.clients, maxNames, len(s.clients), maxClients):
		return true
	}
	held, taken := 0, 0
	for _, c := range s.clients {
		if c.idle() {
			continue
		}
		if taken++; c.home == h {
			held++
		}
	}
	return may(held, maxNames, taken, maxClients)
}

// countOf is how many things of h's are in list.
func countOf[T interface{ owner() *client }](list []T, h *home) (n int) {
	for _, x := range list {
		if x.owner().home == h {
			n++
		}
	}
	return n
}
