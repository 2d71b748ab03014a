package localio

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/vfs"
)

func TestTally(t *testing.T) {
	n := newTally(3, 2)
	for i, c := range []struct {
		uid  uint32
		want bool
	}{{1, true}, {1, true}, {1, false}, {2, true}, {3, false}} {
		if got := n.take(c.uid); got != c.want {
			t.Errorf("%d: user %d: %t", i, c.uid, got)
		}
	}
	n.give(1, 2)
	n.give(2, 1)
	if n.all != 0 || len(n.of) != 0 {
		t.Errorf("left are %d, of %v", n.all, n.of)
	}
}

// TestAloft has one user's clients take nothing of what they have asked for: it
// costs no more descriptors than there are for them, and others get theirs.
func TestAloft(t *testing.T) {
	r := newRig(t, Options{})
	h := r.file("f", 0o644)
	all := slices.Repeat([]localio.SessionOpenFile{want(h)}, maxOpening)
	const clients = maxAloftOfUser/maxOpening + 2
	greedy := make([]*near, clients)
	var stuck []*client
	for i := range greedy {
		greedy[i] = r.local()
	}
	r.s.mu.Lock()
	for c := range r.s.bound {
		stuck = append(stuck, c)
	}
	r.s.mu.Unlock()
	for _, c := range stuck {
		eventually(t, "BOUND is sent", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return !c.sending
		})
		c.stuck()
	}
	first := make([]uint32, clients)
	for i, n := range greedy {
		first[i] = n.next
		n.ask(all...)
	}
	for _, c := range stuck {
		eventually(t, "its files wait", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.answers) == maxOpening
		})
	}
	if got := r.s.aloft.count(); got != maxAloftOfUser {
		t.Errorf("%d descriptors wait, want %d", got, maxAloftOfUser)
	}
	if !r.s.aloft.take(1 + self()) {
		t.Error("another user gets none")
	}
	r.s.aloft.give(1+self(), 1)
	for _, c := range stuck {
		c.unstuck()
	}
	crowded := 0
	for i, n := range greedy {
		for _, f := range n.answers(first[i], maxOpening) {
			if f.Why == localio.SESSION_CROWDED {
				crowded++
			}
		}
	}
	if want := 2 * maxOpening; crowded != want {
		t.Errorf("%d files are kept back, want %d", crowded, want)
	}
	eventually(t, "nothing waits", func() bool { return r.s.aloft.count() == 0 })
}

// TestAloftEnds gives back what waits when its session ends, or is not opened.
func TestAloftEnds(t *testing.T) {
	r := newRig(t, Options{})
	n := r.local()
	h := r.file("f", 0o644)
	c := r.client()
	eventually(t, "BOUND is sent", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !c.sending
	})
	c.stuck()
	n.ask(want(h), want(h))
	eventually(t, "they wait", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.answers) == 2
	})
	if err := n.c.Close(); err != nil {
		t.Fatal(err)
	}
	none := func() bool { return r.s.aloft.count() == 0 }
	eventually(t, "they are given back", func() bool { return r.s.Stats().Sessions == 0 && none() })
	c.unstuck()
	n = r.local()
	r.host.opening(func(context.Context, vfs.Handle) error { return vfs.ErrIO })
	n.open(want(h))
	eventually(t, "none is counted", none)
}

// TestFilesOfUser has one user have as many files as anybody may, by several
// sessions: another user gets some all the same.
func TestFilesOfUser(t *testing.T) {
	r := newRig(t, Options{MaxFiles: 8})
	h := r.file("f", 0o644)
	one, other := r.local(), r.local()
	for range maxFilesOfUser - 10 {
		r.s.held.take(self())
	}
	all := slices.Repeat([]localio.SessionOpenFile{want(h)}, 8)
	got, more := one.open(all...), other.open(all...)
	crowded := func(f opened) bool { return f.Why == localio.SESSION_CROWDED }
	if slices.ContainsFunc(got, crowded) || len(slices.DeleteFunc(slices.Clone(more), crowded)) != 2 {
		t.Errorf("%+v\n%+v", got, more)
	}
	one.close(got...)
	eventually(t, "they are given back", func() bool { return r.s.held.count() == maxFilesOfUser-10+2 })
	if slices.ContainsFunc(other.open(all[:6]...), crowded) {
		t.Error("what was closed still counts")
	}
	for _, n := range []*near{one, other} {
		if err := n.c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "none is counted of sessions that have ended", func() bool {
		return r.s.Stats().Sessions == 0 && r.s.held.count() == maxFilesOfUser-10
	})
	r.s.held.give(self(), maxFilesOfUser-10)
}

// self is the user of the test.
func self() uint32 { return uint32(os.Geteuid()) }
