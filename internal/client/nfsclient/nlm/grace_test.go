package nlm_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/nlm"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestShortGrace: what was locked goes to another if the grace is over before the restart is noticed. The first
// owner is told of the loss, and its open files end, within SuspectTime, though it makes no call about locks.
func TestShortGrace(t *testing.T) {
	for after := time.Duration(0); after < 11*time.Second; after += 700 * time.Millisecond {
		bubble(t, func(t *testing.T) {
			s, first, h := simple(t)
			second := s.client(t, first.mem, 2)
			f := open(t, first, h, 1)
			must(t, first.Lock(t.Context(), h, alone(1, 0, 10)), nil)
			time.Sleep(after) // of the time between two looks at the connection
			s.restart(t, 2*time.Second)
			began := time.Now()
			err := second.Lock(t.Context(), h, alone(1, 5, 10))
			if errors.Is(err, vfs.ErrLocked) { // the look came in time
				must(t, read(t, f), nil)
				if st := first.Stats(); st.Lost != 0 {
					t.Errorf("%+v", st)
				}
				return
			}
			must(t, err, nil)
			time.Sleep(time.Until(began.Add(nlm.SuspectTime)))
			synctest.Wait()
			must(t, read(t, f), vfs.ErrIO)
			must(t, write(t, f), vfs.ErrIO)
			_, ok := errors.AsType[*nlm.LostError](first.Lock(t.Context(), h, alone(1, 50, 1)))
			if st := first.Stats(); !ok || st.Lost == 0 || st.Locks != 0 {
				t.Errorf("after %v: told %t, %+v", after, ok, st)
			}
		})
	}
}

// TestGraceIsEnough: a grace of SuspectTime gives no lock to another, however long the server was down.
func TestGraceIsEnough(t *testing.T) {
	for after := time.Duration(0); after < 11*time.Second; after += 900 * time.Millisecond {
		for _, down := range []time.Duration{0, 3 * time.Second, 61 * time.Second} {
			bubble(t, func(t *testing.T) {
				s, first, h := simple(t)
				second := s.client(t, first.mem, 2)
				f := open(t, first, h, 1)
				must(t, first.Lock(t.Context(), h, alone(1, 0, 10)), nil)
				time.Sleep(after)
				must(t, s.net.Refuse(address, true), nil)
				s.cut(t)
				time.Sleep(down)
				s.restart(t, nlm.SuspectTime)
				must(t, s.net.Refuse(address, false), nil)
				must(t, second.Lock(t.Context(), h, alone(1, 5, 10)), vfs.ErrLocked)
				must(t, read(t, f), nil)
				if st := first.Stats(); st.Lost != 0 || st.Locks != 1 {
					t.Errorf("down for %v after %v: %+v", down, after, st)
				}
			})
		}
	}
}
