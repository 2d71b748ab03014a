package nlm

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/nfsserver/internal/callback"
	"github.com/nfsbox/nfsbox/nfsserver/internal/nsm"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
)

var errFull = errors.New("nlm: too many clients")

// client is a host that locks, or a user of this one.
type client struct {
	key  clientKey
	id   string // vfs.Owner.Client of its owners
	at   string // vfs.Owner.Share of its owners: names its home
	home *home

	// gate is held for reading while a lock of the client's is taken or freed, and
	// for writing while all of them are freed because it has restarted.
	gate sync.RWMutex

	// Guarded by Service.mu.
	from    net.Addr      // where one of its calls came from
	host    callback.Host // how to call it: the way its last call came
	uses    int           // handlers that are at work for it
	files   map[*file]int // in which it has locks, waits or shares, and how many
	seen    time.Time     // of its last call
	watched nsm.Host      // as the monitor knows it; zero: it is not monitored
	asked   time.Time     // when its host was asked for its state number
	state   int32         // that its last notice of a restart has announced
	out     outbox
}

// ownerPrefix begins the Client of all our owners.
const ownerPrefix = "nlm "

// enter finds the client of a call, or makes it. leave gives it back. It is only for
// clients that a rule admits.
func (s *Service) enter(call *oncrpc.Call, name string) (*client, error) {
	if c := s.find(call, name); c != nil {
		return c, nil
	}
	s.makeRoom(call)
	s.mu.Lock()
	defer s.mu.Unlock()
	home, key := s.homeOf(call.Remote), keyOf(call, name)
	if s.clients[key] == nil {
		if !s.mayEnter(home) {
			s.endHome(call.Remote)
			return nil, errFull
		}
		s.clients[key] = &client{key: key, id: ownerPrefix + key.from() + " " + name, at: oncrpc.ShareOf(call.Remote), home: home, from: call.Remote, files: make(map[*file]int)}
		home.clients++
	}
	return s.use(call, name), nil
}

func keyOf(call *oncrpc.Call, name string) clientKey {
	return clientKey{callback.From(call.Remote).Addr(), oncrpc.UserOf(call.Remote), name}
}

// find returns the client of a call, or nil if it is not known. leave gives it back.
func (s *Service) find(call *oncrpc.Call, name string) *client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.use(call, name)
}

// use is find. s.mu is held.
func (s *Service) use(call *oncrpc.Call, name string) *client {
	c := s.clients[keyOf(call, name)]
	if c == nil {
		return nil
	}
	c.uses++
	c.seen = time.Now()
	c.host = callback.Host{Name: c.key.addr.String(), Local: callback.From(call.Local).Addr(), Network: "tcp"}
	if call.Remote.Network() == "udp" {
		c.host.Network = "udp"
	}
	if c.host.Local.IsUnspecified() {
		c.host.Local = netip.Addr{} // a datagram socket does not know which address was reached
	}
	return c
}

func (s *Service) leave(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.uses--
}

// idle reports whether c holds nothing and is not in use. s.mu is held.
func (c *client) idle() bool { return c.uses == 0 && len(c.files) == 0 && c.out.empty() }

// gone reports whether c has not called for idleAfter. s.mu is held.
func (c *client) gone() bool { return time.Since(c.seen) >= idleAfter }

// makeRoom forgets an idle client, if there is no room for another. If the bound is that
// of this home, it is one of this home.
func (s *Service) makeRoom(call *oncrpc.Call) {
	s.mu.Lock()
	home := s.homes[oncrpc.ShareOf(call.Remote)]
	own := home != nil && home.clients >= maxNames
	full := own || len(s.clients) >= maxClients
	s.mu.Unlock()
	if full {
		s.forgetIdle(1, func(c *client) bool { return !own || c.home == home })
	}
}

// forgetIdle forgets at most most idle clients for which which is true, and has the
// monitor forget them, too.
func (s *Service) forgetIdle(most int, which func(*client) bool) {
	s.watching.Lock()
	defer s.watching.Unlock()
	for _, h := range s.takeIdle(most, which) {
		if err := s.nsm.Unwatch(h); err != nil {
			s.o.Log.Warn("a client stays in the list of those that hold locks", "client", h.Name, "error", err)
		}
	}
}

func (s *Service) takeIdle(most int, which func(*client) bool) (hosts []nsm.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, c := range s.clients {
		if most == 0 {
			break
		}
		if !c.idle() || !which(c) {
			continue
		}
		most--
		delete(s.clients, key)
		c.home.clients--
		s.endHome(c.from)
		if c.watched != (nsm.Host{}) {
			hosts = append(hosts, c.watched)
		}
	}
	return s.watchedByNone(hosts)
}

// watchedByNone returns those of the hosts for which no client is monitored any more.
// Several users of this host may have the same name. s.mu is held.
func (s *Service) watchedByNone(hosts []nsm.Host) []nsm.Host {
	if len(hosts) == 0 {
		return nil
	}
	same := func(h nsm.Host) clientKey { return clientKey{addr: h.Addr, name: h.Name} }
	still := make(map[clientKey]bool)
	for _, c := range s.clients {
		if c.watched != (nsm.Host{}) {
			still[same(c.watched)] = true
		}
	}
	return slices.DeleteFunc(hosts, func(h nsm.Host) bool { return still[same(h)] })
}

func (s *Service) watches(c *client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.watched != (nsm.Host{})
}

// watch has c monitored, durably. c is in use.
func (s *Service) watch(c *client) error {
	s.mu.Lock()
	h := nsm.Host{Name: c.key.name, Addr: c.key.addr, Local: c.host.Local}
	s.mu.Unlock()
	s.watching.Lock()
	defer s.watching.Unlock()
	if err := s.nsm.Watch(h); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.watched = h
	return nil
}

// svidBytes is the size of svid, with which an owner's ID begins. oh follows, or its hash
// if it is too long.
const svidBytes = 4

func ownerOf(c *client, oh []byte, svid int32) vfs.Owner {
	o := vfs.Owner{Client: c.id, Share: c.at}
	binary.BigEndian.PutUint32(o.ID[:], uint32(svid))
	if len(oh) > len(o.ID)-svidBytes {
		sum := sha256.Sum256(oh)
		oh = sum[:]
	}
	o.N = uint8(svidBytes + copy(o.ID[svidBytes:], oh))
	return o
}

// holder returns what TEST tells of an owner: nothing if it is not a client of NLM.
func holder(o *vfs.Owner) (oh []byte, svid int32) {
	if !strings.HasPrefix(o.Client, ownerPrefix) || o.N < svidBytes {
		return nil, 0
	}
	return o.ID[svidBytes:o.N], int32(binary.BigEndian.Uint32(o.ID[:]))
}
