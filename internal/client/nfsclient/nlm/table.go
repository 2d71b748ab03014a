package nlm

import (
	"encoding/binary"
	"slices"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	ohRandom = 16           // bytes of an owner handle that are random
	ohBytes  = ohRandom + 8 // and its number

	// The numbers of owners are svids from firstSvid on. Kernels number theirs from 1.
	firstSvid = 1 << 30
	svidMask  = firstSvid - 1
)

// key names the locks of an owner in a file.
type key struct {
	h     vfs.Handle
	owner vfs.Owner
}

// owner is an owner of locks as the server knows it.
type owner struct {
	name vfs.Owner
	oh   [ohBytes]byte
	svid int32
	user *user
	refs int // entries; guarded by shared.mu
}

// entry is what an owner has locked of a file.
type entry struct {
	key
	owner *owner
	turn  chan struct{} // full while an operation has it
	uses  int           // operations; guarded by shared.mu

	// The operation that has the turn changes these, under shared.mu.
	set  byterange.Set
	auth oncrpc.Auth // with which it was locked last
	lost *LostError  // of which the owner has to be told

	// epoch is that in which the server was known to hold set. mixed says that some of set
	// may be from before a restart, and some from after it; again are ranges that were
	// locked on both sides of it. The operation that has the turn uses them.
	epoch uint64
	mixed bool
	again byterange.Set
}

// nameOwners draws where the owners' names begin.
func (s *shared) nameOwners() {
	var r [4]byte
	s.o.Rand(s.oh[:])
	s.o.Rand(r[:])
	s.svid = binary.BigEndian.Uint32(r[:])
}

// number is the owner with number n of this FS; 0 is nobody's, and asks questions.
func (s *shared) number(n uint64, name vfs.Owner) *owner {
	o := &owner{name: name, svid: int32(firstSvid | (s.svid+uint32(n))&svidMask)}
	copy(o.oh[:], s.oh[:])
	binary.BigEndian.PutUint64(o.oh[ohRandom:], n)
	return o
}

// ownerOf finds or makes the owner called name, which is u's. s.mu is held.
func (s *shared) ownerOf(name vfs.Owner, u *user) (*owner, error) {
	if o := s.owners[name]; o != nil {
		return o, nil
	}
	if !may(u.owners, 1, len(s.owners), maxOwners) {
		return nil, u.full(u.owners, len(s.owners), "owners hold locks")
	}
	for range maxOwners + 1 {
		s.serial++
		o := s.number(s.serial, name)
		if s.numbers[o.svid] == nil && o.svid != s.number(0, name).svid {
			o.user = u
			u.owners++
			s.owners[name], s.numbers[o.svid], s.users[u.uid] = o, o, u
			return o, nil
		}
	}
	return nil, &FullError{"no number is free"} // there are 2^30
}

// enter finds or makes the entry of k for a user's operation. leave gives it back.
func (s *shared) enter(k *key, uid int64) (*entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	u := s.userOf(k.owner, uid)
	if !may(u.pending, 1, s.pending, maxPending) {
		return nil, u.full(u.pending, s.pending, "operations are under way")
	}
	e := s.entries[*k]
	if e == nil {
		o, err := s.ownerOf(k.owner, u)
		if err != nil {
			return nil, err
		}
		o.refs++
		e = &entry{key: *k, owner: o, turn: make(chan struct{}, 1)}
		s.entries[*k] = e
	}
	e.uses++
	s.pending++
	e.owner.user.pending++
	s.wg.Add(1)
	return e, nil
}

func (s *shared) leave(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.wg.Done()
	s.pending--
	e.owner.user.pending--
	s.release(e)
}

// release ends a use of e, and forgets it with the last one if there is nothing in it. s.mu is held.
func (s *shared) release(e *entry) {
	if e.uses--; e.uses > 0 || len(e.set) > 0 || e.lost != nil {
		return
	}
	delete(s.entries, e.key)
	if e.owner.refs--; e.owner.refs == 0 {
		delete(s.owners, e.owner.name)
		delete(s.numbers, e.owner.svid)
		if u := e.owner.user; u.owners == 1 {
			delete(s.users, u.uid)
		} else {
			u.owners--
		}
	}
}

// room returns an error if there is none for what one more lock may leave behind.
func (s *shared) room(e *entry, span byterange.Span) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	more := len(slices.Clone(e.set).Put(span)) - len(e.set)
	if u := e.owner.user; more > 0 && !may(u.locks, more, s.locks+s.untold, maxLocks) {
		return u.full(u.locks, s.locks, "ranges are locked")
	}
	return nil
}

// hold notes that set is now what is locked of e. The turn is held.
func (s *shared) hold(e *entry, set byterange.Set, auth oncrpc.Auth, epoch uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locks += len(set) - len(e.set)
	e.owner.user.locks += len(set) - len(e.set)
	switch {
	case len(e.set) == 0 && len(set) > 0:
		s.held.Add(1)
	case len(e.set) > 0 && len(set) == 0:
		s.held.Add(-1)
	}
	if len(e.set) == 0 {
		e.epoch = epoch
	}
	e.set, e.auth = set, auth
	if len(set) > 0 && !s.keeping && !s.closed {
		s.keeping = true
		s.wg.Go(s.keep)
	}
}

// lose notes that spans are lost. The turn is held.
func (s *shared) lose(e *entry, spans []byterange.Span, why string) {
	set := slices.Clone(e.set)
	for _, span := range spans {
		set = set.Take(span)
	}
	s.hold(e, set, e.auth, e.epoch)
	lost := &LostError{Off: spans[0].First, Len: spans[0].Len(), Why: why}
	s.n.lost.Add(uint64(len(spans)))
	s.o.Log.Warn("a lock is lost, and its owner will be told", "server", s.o.Server, "why", why)
	s.fences.put(e.key, lost)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.lost == nil {
		e.lost = lost
		s.untold++
	}
}

// told returns the loss of which the owner has to be told, once.
func (s *shared) told(e *entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.lost == nil {
		return nil
	}
	err := e.lost
	e.lost = nil
	s.untold--
	return err
}

// whose returns the owner of a lock that the server tells of: one of this FS, or one that is named
// after what the server says. A server may leave out oh.
func (s *shared) whose(svid int32, oh []byte) vfs.Owner {
	s.mu.Lock()
	o := s.numbers[svid]
	s.mu.Unlock()
	if o != nil && (len(oh) == 0 || string(oh) == string(o.oh[:])) {
		return o.name
	}
	if svid == 0 && len(oh) == 0 {
		return vfs.Owner{} // a program of the server's
	}
	other := vfs.Owner{Client: "nlm"}
	binary.BigEndian.PutUint32(other.ID[:], uint32(svid))
	other.N = uint8(4 + copy(other.ID[4:], oh))
	return other
}
