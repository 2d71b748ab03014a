package nlm_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/nlm"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
	"github.com/nfsbox/nfsbox/xdr"
)

// TestSuite runs the suite's locks on a server that never fails.
func TestSuite(t *testing.T) {
	vfstest.Run(t, vfstest.Config{
		Groups: []string{"lock"},
		Differences: map[string]string{
			"lock/survives-removal": "this server does not know the files, and finds none of them stale",
			"lock/no-file":          "nor what is none",
			"lock/rights":           "nor who may use them",
		},
		New: func(t *testing.T) vfs.FS { return newServer(t).client(t, memfs.New(memfs.Options{Mode: 0o777}), 1) },
	})
}

// TestFreeOfCharge: without locks no call is made, and nothing runs.
func TestFreeOfCharge(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, c, h := simple(t)
		f := open(t, c, h, 1)
		must(t, write(t, f), nil)
		must(t, read(t, f), nil)
		must(t, c.Unlock(t.Context(), h, shared(1, 0, 0)), nil)
		time.Sleep(time.Hour)
		if n := s.total(); n != 0 {
			t.Errorf("%d calls", n)
		}
		must(t, c.Lock(t.Context(), h, alone(1, 0, 0)), nil)
		must(t, c.Unlock(t.Context(), h, alone(1, 0, 0)), nil)
		time.Sleep(time.Minute) // the keeper sees that it is not needed
		n := s.total()
		time.Sleep(time.Hour)
		if more := s.total() - n; more != 0 {
			t.Errorf("%d calls without a lock", more)
		}
		if st := c.Stats(); st.Locks != 0 || st.Owners != 0 || st.Pending != 0 {
			t.Errorf("left: %+v", st)
		}
	})
}

// TestAllocations: what passes straight through allocates nothing.
func TestAllocations(t *testing.T) {
	_, c, h := simple(t)
	f := open(t, c, h, 1)
	must(t, write(t, f), nil)
	inner, _ := vfs.As[vfs.Unwrapper](f)
	below, ok := inner.Unwrap().(vfs.File)
	if !ok {
		t.Fatal("there is no file below")
	}
	p := make([]byte, 1)
	per := func(f vfs.File) float64 {
		return testing.AllocsPerRun(100, func() {
			if _, _, err := f.ReadAt(t.Context(), p, 0, nil); err != nil {
				t.Error(err)
			}
		})
	}
	if here, there := per(f), per(below); here > there {
		t.Errorf("%.1f allocations a read, %.1f below", here, there)
	}
}

// TestReclaim: a lock is had back in the grace, though its owner does nothing, and a new one waits for
// its end.
func TestReclaim(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, c, h := simple(t)
		f := open(t, c, h, 1)
		must(t, c.Lock(t.Context(), h, alone(1, 0, 10)), nil)
		must(t, c.Lock(t.Context(), h, shared(1, 20, 10)), nil)
		s.restart(t, time.Minute)
		start := time.Now()
		must(t, c.Lock(t.Context(), h, alone(2, 50, 1)), nil)
		if took := time.Since(start); took < time.Minute || took > 70*time.Second {
			t.Errorf("a new lock took %v, in a grace of a minute", took)
		}
		must(t, c.Lock(t.Context(), h, alone(2, 9, 1)), vfs.ErrLocked)
		must(t, c.Lock(t.Context(), h, alone(2, 29, 1)), vfs.ErrLocked)
		s.restart(t, 30*time.Second)
		time.Sleep(29 * time.Second)
		if n := s.holders(); n != 2 {
			t.Errorf("%d owners have their locks at the end of the grace, want 2", n)
		}
		time.Sleep(time.Minute)
		must(t, c.Lock(t.Context(), h, alone(1, 0, 10)), nil)
		must(t, read(t, f), nil)
		if st := c.Stats(); st.Lost != 0 || st.Reclaimed < 5 {
			t.Errorf("%+v", st)
		}
	})
}

// TestLost: what cannot be had back is told once, and fences the owner's open files alone.
func TestLost(t *testing.T) {
	for name, lose := range map[string]func(*testing.T, *server, *client, vfs.Handle){
		"the grace is over": func(t *testing.T, s *server, _ *client, _ vfs.Handle) { s.restart(t, 0) },
		"another has it": func(t *testing.T, s *server, other *client, h vfs.Handle) {
			s.restart(t, 0)
			must(t, other.Lock(t.Context(), h, alone(1, 0, 0)), nil)
		},
		"no room": func(t *testing.T, s *server, _ *client, _ vfs.Handle) {
			s.mu.Lock()
			s.full = true
			s.mu.Unlock()
			s.restart(t, time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, c, h := simple(t)
				other := s.client(t, c.mem, 2)
				mine, theirs := open(t, c, h, 1), open(t, c, h, 2)
				elsewhere := open(t, c, create(t, c.mem, "other"), 1)
				must(t, write(t, mine), nil)
				must(t, c.Lock(t.Context(), h, alone(1, 5, 5)), nil)
				lose(t, s, other, h)
				time.Sleep(10 * time.Minute)
				for range 2 {
					must(t, read(t, mine), vfs.ErrIO)
					must(t, write(t, mine), vfs.ErrIO)
				}
				must(t, read(t, theirs), nil)
				must(t, read(t, elsewhere), nil)
				var lost *nlm.LostError
				if err := c.Lock(t.Context(), h, alone(1, 0, 1)); !errors.As(err, &lost) || lost.Off != 5 || lost.Len != 5 {
					t.Errorf("%v, want the loss of 5 bytes from 5", err)
				}
				must(t, c.Unlock(t.Context(), h, alone(1, 0, 0)), nil) // it is told once
				must(t, read(t, mine), vfs.ErrIO)                      // for good
				must(t, read(t, open(t, c, h, 1)), nil)
				if near, ok := vfs.As[vfs.Near](mine); !ok || !near.Near() {
					t.Error("what was read ahead of a fenced file is still handed out")
				}
				synctest.Wait()
				if st := c.Stats(); st.Lost != 1 || st.Locks != 0 || st.Owners != 0 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// TestLossIsToldByUnlock: it frees what is left as well.
func TestLossIsToldByUnlock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, c, h := simple(t)
		must(t, c.Lock(t.Context(), h, alone(1, 0, 1)), nil)
		s.restart(t, 0)
		must(t, c.Unlock(t.Context(), h, alone(1, 0, 0)), vfs.ErrIO) // at once: the keeper has not looked
		must(t, c.Unlock(t.Context(), h, alone(1, 0, 0)), nil)
		must(t, c.Lock(t.Context(), h, alone(1, 0, 1)), nil)
		must(t, c.Lock(t.Context(), h, alone(1, 5, 1)), nil)
		time.Sleep(2 * time.Second)
		s.restart(t, 0)
		must(t, c.Lock(t.Context(), h, alone(1, 9, 1)), vfs.ErrIO)
		must(t, c.Lock(t.Context(), h, alone(1, 9, 1)), nil)
		must(t, c.Unlock(t.Context(), h, alone(1, 9, 1)), nil)
		if n := s.holders(); n != 0 {
			t.Errorf("%d owners have locks", n)
		}
	})
}

// TestConnectionBreaks: a server that did not restart still has the locks, and nobody is told of a loss.
func TestConnectionBreaks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, c, h := simple(t)
		other := s.client(t, c.mem, 2)
		must(t, c.Lock(t.Context(), h, alone(1, 0, 10)), nil)
		must(t, c.Lock(t.Context(), h, shared(2, 20, 10)), nil)
		must(t, other.Lock(t.Context(), h, shared(1, 20, 10)), nil) // TEST may tell of this one
		for range 20 {
			s.cut(t)
			time.Sleep(20 * time.Second)
		}
		must(t, c.Unlock(t.Context(), h, alone(1, 0, 0)), nil)
		must(t, c.Unlock(t.Context(), h, alone(2, 0, 0)), nil)
		if st := c.Stats(); st.Lost != 0 || st.Suspected < 20 {
			t.Errorf("%+v", st)
		}
	})
}

// TestVerifier: another verifier has the locks looked at, before the connection breaks.
func TestVerifier(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, c, h := simple(t)
		c.mem.Restart() // the first verifier is 0, which means none
		f := open(t, c, h, 1)
		must(t, c.Lock(t.Context(), h, alone(1, 0, 0)), nil)
		must(t, write(t, f), nil)
		c.mem.Restart()
		must(t, write(t, f), nil)
		synctest.Wait()
		if st := c.Stats(); st.Suspected != 1 || st.Lost != 0 || s.called(nlm4.NLMPROC4_TEST) != 1 {
			t.Errorf("%+v, %d TESTs", st, s.called(nlm4.NLMPROC4_TEST))
		}
	})
}

// TestCutLock: a lock whose caller has gone does not stay at the server.
func TestCutLock(t *testing.T) {
	for name, after := range map[string]time.Duration{"before the reply": 5 * time.Second, "the reply never comes": time.Hour} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, c, h := simple(t)
				must(t, c.Lock(t.Context(), h, shared(1, 0, 10)), nil)
				must(t, c.Lock(t.Context(), h, alone(1, 20, 10)), nil)
				slow := time.Now().Add(after)
				s.mu.Lock()
				s.before = func(p *xdr.Proc) bool {
					if p == nlm4.NLMPROC4_LOCK {
						if after == time.Hour {
							time.Sleep(time.Second) // it is executed, and
							return time.Now().After(slow)
						}
						time.Sleep(after)
					}
					return true
				}
				s.mu.Unlock()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				err := c.Lock(ctx, h, alone(1, 5, 50))
				must(t, err, context.DeadlineExceeded)
				must(t, err, vfs.ErrUnknownOutcome)
				if took := time.Since(start); took > 2*time.Second {
					t.Errorf("took %v", took)
				}
				time.Sleep(2 * time.Minute)
				s.mu.Lock()
				s.before = nil
				s.mu.Unlock()
				time.Sleep(time.Minute)
				// It has what it had, but for a shared lock where the outcome is unknown.
				for _, l := range []*vfs.Lock{alone(2, 10, 10), alone(2, 30, 20)} {
					if _, free, err := c.TestLock(t.Context(), h, l); err != nil || !free {
						t.Errorf("%+v: %t, %v", l, free, err)
					}
				}
				for _, l := range []*vfs.Lock{alone(2, 0, 1), alone(2, 9, 1), alone(2, 20, 1), shared(2, 29, 1)} {
					_, free, err := c.TestLock(t.Context(), h, l)
					if err != nil || free && c.Stats().Lost == 0 {
						t.Errorf("%+v is free, %v", l, err)
					}
				}
				st := c.Stats()
				if st.Pending != 0 || st.Settled != 1 {
					t.Errorf("%+v", st)
				}
				// Calls without a reply take down the connection. Then nobody knows whether what was
				// held is from before a restart.
				if after == time.Hour && st.Lost > 0 {
					must(t, c.Unlock(t.Context(), h, alone(1, 0, 0)), vfs.ErrIO)
				} else if st.Lost > 0 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// TestUnlockOutlives its caller.
func TestUnlockOutlives(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, c, h := simple(t)
		must(t, c.Lock(t.Context(), h, alone(1, 0, 0)), nil)
		if err := s.net.Partition(address); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		must(t, c.Unlock(ctx, h, alone(1, 0, 0)), context.DeadlineExceeded)
		time.Sleep(20 * time.Second)
		if err := s.net.Heal(address); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if n := s.holders(); n != 0 {
			t.Error("the lock is still held")
		}
		if st := c.Stats(); st.Unsettled != 0 || st.Locks != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestUnsettled: what goes on without its caller ends, and is counted.
func TestUnsettled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, c, h := simple(t)
		must(t, c.Lock(t.Context(), h, alone(1, 0, 0)), nil)
		if err := s.net.Partition(address); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		must(t, c.Unlock(ctx, h, alone(1, 0, 0)), context.DeadlineExceeded)
		time.Sleep(5 * time.Minute)
		if st := c.Stats(); st.Unsettled != 1 || st.Locks != 0 || st.Pending != 0 {
			t.Errorf("%+v", st)
		}
		if err := s.net.Heal(address); err != nil {
			t.Fatal(err)
		}
	})
}

// TestNoManager: the error says so, nothing else is harmed, and it is not looked for at every lock.
func TestNoManager(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem, looked := memfs.New(memfs.Options{Mode: 0o777}), 0
		c := nlm.New(mem, nlm.Options{
			Server: "filer", Rand: func([]byte) {}, Auth: func(*vfs.Caller) (oncrpc.Auth, error) { return oncrpc.Auth{}, nil },
			Connect: func(context.Context, func()) (*oncrpc.Client, error) { looked++; return nil, syscall.ECONNREFUSED },
		})
		h := create(t, mem, "file")
		f := open(t, c, h, 1)
		for range 10 {
			err := c.Lock(t.Context(), h, alone(1, 0, 0))
			must(t, err, syscall.ENOLCK)
			must(t, err, errors.ErrUnsupported)
			if text := err.Error(); !strings.Contains(text, "filer") || !strings.Contains(text, "no lock manager") || !strings.Contains(text, "nlmport") {
				t.Error(text)
			}
			must(t, write(t, f), nil)
			must(t, c.Unlock(t.Context(), h, alone(1, 0, 0)), nil)
		}
		if looked != 1 {
			t.Errorf("looked for it %d times", looked)
		}
		time.Sleep(time.Minute)
		must(t, c.Lock(t.Context(), h, alone(1, 0, 0)), syscall.ENOLCK)
		if looked != 2 {
			t.Errorf("looked for it %d times", looked)
		}
		synctest.Wait()
		if st := c.Stats(); st != (nlm.Stats{}) {
			t.Errorf("left: %+v", st)
		}
		must(t, c.Close(), nil)
		must(t, c.Lock(t.Context(), h, alone(1, 0, 0)), vfs.ErrInval)
	})
}

// TestBounds: owners and ranges have theirs, and room comes back.
func TestBounds(t *testing.T) {
	if need.Race {
		t.Skip("20,000 calls; without the race detector they are made")
	}
	s, c, h := simple(t)
	const most = 1 << 12 // owners, with four ranges each
	files := make([]vfs.Handle, 256)
	for i := range files {
		files[i] = create(t, c.mem, strconv.Itoa(i))
	}
	lock := func(n int, off uint64) error { return c.Lock(t.Context(), files[n%len(files)], shared(n, off, 1)) }
	for i := range most {
		must(t, lock(i, 0), nil)
	}
	must(t, lock(most, 0), syscall.ENOLCK)
	for i := range 3 * most {
		must(t, lock(i%most, 2+uint64(i/most)*2), nil)
	}
	must(t, lock(0, 100), syscall.ENOLCK)
	must(t, c.Lock(t.Context(), files[0], shared(0, 0, 0)), nil) // which makes fewer
	must(t, c.Lock(t.Context(), h, shared(0, 0, 1)), nil)
	must(t, c.Unlock(t.Context(), files[1], shared(1, 0, 0)), nil)
	must(t, lock(most, 0), nil)
	must(t, c.ReleaseLocks(t.Context(), func(*vfs.Owner) bool { return true }), nil)
	for end := time.Now().Add(time.Minute); c.Stats().Pending > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // what has answered its caller is about to end
	}
	if st, n := c.Stats(), s.holders(); st.Locks != 0 || st.Owners != 0 || n != 0 {
		t.Errorf("left: %+v, %d at the server", st, n)
	}
}

// TestNames: no two owners of a host have one name, in whichever client.
func TestNames(t *testing.T) {
	s, a, h := simple(t)
	b := s.client(t, a.mem, 2)
	for i := range 100 {
		must(t, a.Lock(t.Context(), h, shared(i, 0, 0)), nil)
		must(t, b.Lock(t.Context(), h, shared(i, 0, 0)), nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	oh, svid := make(map[string]bool), make(map[int32]bool)
	for _, of := range s.held {
		for o := range of {
			oh[o.oh], svid[o.svid] = true, true
			if o.name != "client" || o.svid < 1<<30 {
				t.Errorf("%+v", o)
			}
		}
	}
	if len(oh) != 200 || len(svid) != 200 {
		t.Errorf("%d handles and %d numbers for 200 owners", len(oh), len(svid))
	}
}

// TestClose frees what is held, or says that it could not.
func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, c, h := simple(t)
		must(t, c.Lock(t.Context(), h, alone(1, 0, 0)), nil)
		must(t, c.Close(), nil)
		if s.holders() != 0 {
			t.Error("a lock is left")
		}
		d := s.client(t, c.mem, 2)
		must(t, d.Lock(t.Context(), h, alone(1, 0, 0)), nil)
		if err := s.net.Partition(address); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		must(t, d.Close(), vfs.ErrIO)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
		if err := s.net.Heal(address); err != nil {
			t.Fatal(err)
		}
	})
}
