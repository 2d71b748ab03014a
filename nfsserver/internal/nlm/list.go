package nlm

import (
	"context"
	"net/netip"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// Holder is a client as the lock manager knows it.
type Holder struct {
	Addr   netip.Addr // the zero Addr: not over IP
	User   string     // as oncrpc.UserOf has it
	Name   string     // as it calls itself
	Locks  int        // ranges
	Waits  int
	Shares int
	Seen   time.Time // when it last called
}

// Holders returns the clients that are known, in no order.
func (s *Service) Holders() []Holder {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := make(map[*client]*Holder, len(s.clients))
	all := make([]Holder, 0, len(s.clients))
	for _, c := range s.clients {
		all = append(all, Holder{Addr: c.key.addr, User: c.key.user, Name: c.key.name, Seen: c.seen})
		of[c] = &all[len(all)-1]
	}
	for _, f := range s.files {
		for _, have := range f.held {
			of[have.c].Locks += len(have.set)
		}
		for _, w := range f.queue {
			of[w.c].Waits++
		}
		for _, o := range f.shares {
			of[o.c].Shares++
		}
	}
	return all
}

// Held is a range that a client has locked, or waits for.
type Held struct {
	Addr      netip.Addr
	User      string
	Name      string
	File      vfs.Handle // sealed
	Process   int32      // svid: a number that the client gives its process
	Off, Len  uint64     // Len 0: to the end of the file
	Exclusive bool
	Waits     bool
}

// Held returns all locks and all that is waited for, in no order; maxLocks and
// maxWaits bound them.
func (s *Service) Held() []Held {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Held, 0, s.locks+s.waits)
	for _, f := range s.files {
		for owner, have := range f.held {
			_, svid := holder(&owner)
			for _, span := range have.set {
				all = append(all, Held{Addr: have.c.key.addr, User: have.c.key.user, Name: have.c.key.name, File: f.h, Process: svid,
					Off: span.First, Len: span.Len(), Exclusive: span.Exclusive})
			}
		}
		for _, w := range f.queue {
			_, svid := holder(&w.lock.Owner)
			all = append(all, Held{Addr: w.c.key.addr, User: w.c.key.user, Name: w.c.key.name, File: f.h, Process: svid,
				Off: w.span.First, Len: w.span.Len(), Exclusive: w.span.Exclusive, Waits: true})
		}
	}
	return all
}

// Drop frees all that clients hold for whose address and user which is true, whatever
// their names, and returns how many of them held something. They are not told. which is
// called with the service locked, and must not call it.
func (s *Service) Drop(ctx context.Context, which func(netip.Addr, string) bool) (n int) {
	s.mu.Lock()
	var all []*client
	for _, c := range s.clients {
		if which(c.key.addr, c.key.user) {
			c.uses++
			all = append(all, c)
			if len(c.files) > 0 {
				n++
			}
		}
	}
	s.mu.Unlock()
	for _, c := range all {
		s.release(ctx, c, func(int32) bool { return true })
	}
	return n
}
