package dir

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// heldSys holds syncs of directories until the test lets them go.
type heldSys struct {
	osSys
	held  atomic.Bool
	gate  chan error // what the next one returns
	syncs atomic.Int64
}

func (s *heldSys) Fsync(fd int) error {
	if !s.held.Load() {
		return s.osSys.Fsync(fd)
	}
	s.syncs.Add(1)
	return <-s.gate
}

// TestSeenIsStable wants a call that sees a change that is not yet stable to wait for
// a sync that begins after it looked, whatever it does, and those that look at
// something else not to wait.
func TestSeenIsStable(t *testing.T) {
	for _, c := range []struct {
		name   string
		delete bool // the change is a removal
		look   func(*testing.T, *Store) error
		want   error
	}{
		{"stat", false, func(t *testing.T, s *Store) error { _, err := s.Stat(t.Context(), "key"); return err }, nil},
		{"stat of a deleted one", true, func(t *testing.T, s *Store) error { _, err := s.Stat(t.Context(), "key"); return err }, object.ErrNotExist},
		{"get", false, func(t *testing.T, s *Store) error {
			r, _, err := s.Get(t.Context(), "key", 0, -1)
			if err != nil {
				return err
			}
			return r.Close()
		}, nil},
		{"list", false, func(t *testing.T, s *Store) error {
			p, err := s.List(t.Context(), "", "", 0)
			if err == nil && len(p.Objects) != 2 {
				t.Errorf("listed: %+v", p)
			}
			return err
		}, nil},
		{"put if absent", false, func(t *testing.T, s *Store) error {
			_, err := s.Put(t.Context(), "key", strings.NewReader("y"), object.PutOptions{Size: 1, IfAbsent: true})
			return err
		}, object.ErrExist},
		{"delete of a deleted one", true, func(t *testing.T, s *Store) error { return s.Delete(t.Context(), "key") }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sys := &heldSys{gate: make(chan error)}
				s := fresh(t, Options{Sys: sys})
				put(t, s, "keys-of-the-same-bucket", "1")
				if c.delete {
					put(t, s, "key", "1")
				}
				sys.held.Store(true)
				changed, looked, elsewhere := make(chan error, 1), make(chan error, 1), make(chan error, 1)
				go func() {
					if c.delete {
						changed <- s.Delete(t.Context(), "key")
						return
					}
					_, err := s.Put(t.Context(), "key", strings.NewReader("x"), object.PutOptions{Size: -1})
					changed <- err
				}()
				synctest.Wait() // The change is made, and its sync has begun.
				go func() { looked <- c.look(t, s) }()
				go func() { _, err := s.Stat(t.Context(), "keys-of-the-same-bucket"); elsewhere <- err }()
				synctest.Wait()
				if err := <-elsewhere; err != nil {
					t.Error(err)
				}
				if n := sys.syncs.Load(); n != 1 || len(looked) > 0 {
					t.Errorf("%d syncs have begun; who looked has been answered: %v", n, len(looked) > 0)
				}
				sys.gate <- nil
				if err := <-changed; err != nil {
					t.Error(err)
				}
				sys.gate <- nil // A sync of his own: the first may have begun before the change he saw.
				if err := <-looked; !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				sys.held.Store(false)
			})
		})
	}
}

func put(t *testing.T, s *Store, key, content string) {
	t.Helper()
	if _, err := s.Put(t.Context(), key, strings.NewReader(content), object.PutOptions{Size: -1}); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, s *Store, key string) string {
	t.Helper()
	r, _, err := s.Get(t.Context(), key, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestSyncsAreShared has many Puts come while one sync runs: the next is for all.
func TestSyncsAreShared(t *testing.T) {
	const puts = 50
	synctest.Test(t, func(t *testing.T) {
		sys := &heldSys{gate: make(chan error)}
		s := fresh(t, Options{Sys: sys})
		put(t, s, "aa", "the directory")
		sys.held.Store(true)
		done := make(chan error, puts)
		for i := range puts {
			go func() {
				_, err := s.Put(t.Context(), "aa"+string(rune('a'+i%26))+string(rune('a'+i/26)), strings.NewReader("x"), object.PutOptions{Size: 1})
				done <- err
			}()
		}
		synctest.Wait()
		sys.gate <- nil
		sys.gate <- nil
		for range puts {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if n := sys.syncs.Load(); n != 2 {
			t.Errorf("%d syncs for %d objects", n, puts)
		}
		sys.held.Store(false)
	})
}

// TestFailedSync lets the sync of a directory fail once. Its Put does not know the
// outcome, nobody is shown the object as stored, nothing more is written, and all
// else is still read.
func TestFailedSync(t *testing.T) {
	path := memory(t)
	sys := &faultySys{}
	s := reopen(t, path, Options{Create: true, Sys: sys})
	put(t, s, "key", "old")
	put(t, s, "keep", "kept")
	sys.fail("fsync", unix.EIO)
	_, err := s.Put(t.Context(), "key", strings.NewReader("new"), object.PutOptions{Size: 3})
	if !errors.Is(err, object.ErrUnknownOutcome) || !errors.Is(err, unix.EIO) {
		t.Errorf("the Put: %v", err)
	}
	sys.fail("", nil)
	if _, err := s.Stat(t.Context(), "key"); !errors.Is(err, unix.EIO) {
		t.Errorf("a look at it: %v", err)
	}
	if _, err := s.Put(t.Context(), "other", strings.NewReader("x"), object.PutOptions{Size: 1}); !errors.Is(err, unix.EIO) {
		t.Errorf("another Put: %v", err)
	}
	if err := s.Delete(t.Context(), "keep"); !errors.Is(err, unix.EIO) {
		t.Errorf("a Delete: %v", err)
	}
	if got := content(t, s, "keep"); got != "kept" || !s.Snapshot().Failed {
		t.Errorf("what has nothing to do with it reads %q; failed: %v", got, s.Snapshot().Failed)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, path, Options{})
	if got := content(t, s, "key"); got != "new" && got != "old" {
		t.Errorf("opened anew, it is %q", got)
	}
	put(t, s, "key", "newer")
	sound(t, s, path)
}

// TestSeenWhileChanging looks at a name that is made, while the call that makes it has not
// yet got round to noting that.
func TestSeenWhileChanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sys := &slowLinkSys{made: make(chan struct{}), goOn: make(chan struct{})}
		s := fresh(t, Options{Sys: sys})
		put(t, s, "keys-of-the-same-bucket", "1")
		sys.held.Store(true)
		done := make(chan error, 1)
		go func() {
			_, err := s.Put(t.Context(), "key", strings.NewReader("x"), object.PutOptions{Size: 1})
			done <- err
		}()
		<-sys.made
		before := s.Snapshot().Syncs
		if got := content(t, s, "key"); got != "x" || s.Snapshot().Syncs != before+1 {
			t.Errorf("it is %q after %d syncs", got, s.Snapshot().Syncs-before)
		}
		sys.goOn <- struct{}{}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// slowLinkSys makes a link, and takes its time to say so.
type slowLinkSys struct {
	osSys
	held       atomic.Bool
	made, goOn chan struct{}
}

func (s *slowLinkSys) Linkat(from, dir int, name string) error {
	err := s.osSys.Linkat(from, dir, name)
	if s.held.Load() {
		s.made <- struct{}{}
		<-s.goOn
	}
	return err
}

// TestCancelTooLate cancels Puts that have made their names and wait for the sync.
// They wait on, and succeed.
func TestCancelTooLate(t *testing.T) {
	const puts = 5
	synctest.Test(t, func(t *testing.T) {
		sys := &heldSys{gate: make(chan error)}
		s := fresh(t, Options{Sys: sys})
		put(t, s, "key", "the directory")
		sys.held.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, puts)
		for i := range puts {
			go func() {
				_, err := s.Put(ctx, "key"+string(rune('a'+i)), strings.NewReader("x"), object.PutOptions{Size: 1})
				done <- err
			}()
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		if len(done) > 0 {
			t.Errorf("%d have given up: %v", len(done), <-done)
			return
		}
		sys.gate <- nil
		sys.gate <- nil
		for range puts {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		sys.held.Store(false)
	})
}
