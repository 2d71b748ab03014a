package nlm

import (
	"errors"
	"syscall"
	"testing"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestShares: a user that takes what it can leaves something for the next, of ranges, owners and operations. What it
// gives back is nobody's.
func TestShares(t *testing.T) {
	need.Speed(t, "one goroutine")
	f := New(nil, Options{Rand: func(p []byte) { clear(p) }})
	s := f.s
	s.keeping = true // there is no server to ask
	const greedy, other = 1, 2
	var all []*entry
	owner := func(n int) vfs.Owner { return vfs.Owner{ID: [64]byte{byte(n), byte(n >> 8)}} }
	enter := func(uid int64, n int) (*entry, error) {
		e, err := s.enter(&key{owner: owner(n)}, uid)
		if err == nil {
			all = append(all, e)
		}
		return e, err
	}
	full := func(err error) {
		t.Helper()
		if !errors.Is(err, syscall.ENOLCK) || !errors.Is(err, vfs.ErrBusy) {
			t.Fatal(err)
		}
	}

	// Operations.
	var err error
	for range maxPending {
		if _, err = enter(greedy, 1); err != nil {
			break
		}
	}
	if full(err); len(all) != maxPending/2 {
		t.Errorf("%d operations of one user", len(all))
	}
	o, err := enter(other, 2)
	if err != nil {
		t.Fatal(err)
	}

	// Ranges. One that joins others is no more than there was.
	taken := 0
	take := func(e *entry) error {
		span := byterange.Span{First: uint64(2 * taken), Last: uint64(2 * taken)}
		if err := s.room(e, span); err != nil {
			return err
		}
		s.hold(e, e.set.Put(span), oncrpc.Auth{}, 0)
		taken++
		return nil
	}
	for err = nil; err == nil && taken <= maxLocks; {
		err = take(all[0])
	}
	if full(err); taken != maxLocks/2 {
		t.Errorf("%d ranges of one user", taken)
	}
	if err := take(o); err != nil {
		t.Error(err)
	}
	if err := s.room(all[0], byterange.Span{First: 0, Last: 2}); err != nil {
		t.Error(err)
	}

	// Owners.
	for _, e := range all {
		s.hold(e, nil, oncrpc.Auth{}, 0)
		s.leave(e)
	}
	all = nil
	n := 0
	for err = nil; err == nil && n <= maxOwners; {
		if _, err = s.ownerOf(owner(n+10), s.userOf(owner(n+10), greedy)); err == nil {
			n++
		}
	}
	if full(err); n != maxOwners/2 {
		t.Errorf("%d owners of one user", n)
	}
	if _, err := enter(other, 2); err != nil {
		t.Fatal(err)
	}
	s.leave(all[0])
	if u := s.users[other]; u != nil {
		t.Errorf("nothing is left of it, but %+v", *u)
	}
}
