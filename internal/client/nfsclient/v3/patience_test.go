package v3_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/internal/client/pace"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// TestPatience has a server that never answers, and one that is not there.
func TestPatience(t *testing.T) {
	for name, tc := range map[string]struct {
		o     v3.Options
		there bool
		errno syscall.Errno
	}{
		"soft":             {v3.Options{}, true, syscall.EIO},
		"softerr":          {v3.Options{SoftErr: true}, true, syscall.ETIMEDOUT},
		"soft, not there":  {v3.Options{}, false, syscall.EIO},
		"softerr, no host": {v3.Options{SoftErr: true}, false, syscall.ETIMEDOUT},
	} {
		inBubble(t, name, func(t *testing.T) {
			silent := func(int, *oncrpc.Call) xdr.Appender { return nil }
			st := play(t, script{nfs3.NFSPROC3_GETATTR: silent, nfs3.NFSPROC3_RMDIR: silent}, tc.o)
			if !tc.there {
				if err := st.net.Refuse(address, true); err != nil {
					t.Fatal(err)
				}
			}
			_, err := st.fs.GetAttr(t.Context(), handle(t, "file"), vfs.MaskV3)
			if !errors.Is(err, tc.errno) || errors.Is(err, os.ErrDeadlineExceeded) != tc.there || errors.Is(err, oncrpc.ErrTimeout) != tc.there {
				t.Errorf("%v; want %v", err, tc.errno)
			}
			if patience, ok := errors.AsType[*v3.PatienceError](err); !ok || patience.Errno != tc.errno {
				t.Errorf("%v is no patience that has ended", err)
			}
			if s, ok := vfs.StatusOf(err); tc.errno == syscall.EIO && (!ok || s != vfs.ErrIO) {
				t.Errorf("the status of %v is %v, %v", err, s, ok)
			}
			// A change that was sent is of unknown outcome; one that never left is not.
			_, err = st.fs.Remove(t.Context(), handle(t, "dir"), "x", true)
			if !errors.Is(err, tc.errno) || errors.Is(err, vfs.ErrUnknownOutcome) != tc.there {
				t.Errorf("%v; want %v, unknown outcome %v", err, tc.errno, tc.there)
			}
		})
	}
}

// TestPaceBusy holds no admission while it waits for a busy server: with a limit
// of one, another call comes through.
func TestPaceBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := pace.New(pace.Options{Max: [pace.Classes]int{1, 1, 1}})
		st := play(t, script{
			nfs3.NFSPROC3_GETATTR: busyFor(5, &nfs3.GETATTR3res{}),
			nfs3.NFSPROC3_ACCESS:  always(&nfs3.ACCESS3res{}),
		}, v3.Options{Pace: limiter})
		done := make(chan error)
		go func() {
			_, err := st.fs.GetAttr(t.Context(), handle(t, "file"), vfs.MaskV3)
			done <- err
		}()
		synctest.Wait()
		if s := limiter.Snapshot()[pace.Metadata]; s.InFlight != 0 || s.BackOffs != 0 && s.Limit != 1 {
			t.Errorf("during the pause: %+v", s)
		}
		start := time.Now()
		if _, _, err := st.fs.Access(t.Context(), handle(t, "file"), vfs.AccessRead); err != nil || time.Since(start) != 0 {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := st.fs.Statuses(nfs3.NFSPROC3_GETATTR)[vfs.ErrBusy]; n != 5 {
			t.Errorf("%d times busy were counted", n)
		}
	})
}

// TestPaceResent does not take a lost connection for load: the limit stays.
func TestPaceResent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := pace.New(pace.Options{})
		before := limiter.Snapshot()[pace.Metadata].Limit
		var st *stage
		st = play(t, script{nfs3.NFSPROC3_GETATTR: twice(t, &st, &nfs3.GETATTR3res{})}, v3.Options{Pace: limiter})
		if _, err := st.fs.GetAttr(t.Context(), handle(t, "file"), vfs.MaskV3); err != nil {
			t.Fatal(err)
		}
		if n := st.rpc.Stats().Retransmits; n != 1 {
			t.Fatalf("sent again %d times", n)
		}
		if s := limiter.Snapshot()[pace.Metadata]; s.BackOffs != 0 || s.Limit < before {
			t.Errorf("was %d: %+v", before, s)
		}
	})
}

// TestPaceTimeout takes a call that was not answered at all for load, and one for
// which there was no connection for nothing.
func TestPaceTimeout(t *testing.T) {
	for name, backOffs := range map[string]uint64{"silent": 1, "not there": 0} {
		inBubble(t, name, func(t *testing.T) {
			limiter := pace.New(pace.Options{})
			st := play(t, script{nfs3.NFSPROC3_GETATTR: func(int, *oncrpc.Call) xdr.Appender { return nil }}, v3.Options{Pace: limiter})
			if err := st.net.Refuse(address, backOffs == 0); err != nil {
				t.Fatal(err)
			}
			if _, err := st.fs.GetAttr(t.Context(), handle(t, "file"), vfs.MaskV3); err == nil {
				t.Fatal("no error")
			}
			if s := limiter.Snapshot()[pace.Metadata]; s.BackOffs != backOffs {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestPaceSilent has many calls wait for their turn at a server that does not
// answer: none is given up later than twice the patience of one, and all is
// as before when the server is back.
func TestPaceSilent(t *testing.T) {
	const patience = oncrpc.DefaultTimeout * (oncrpc.DefaultRetries + 1)
	synctest.Test(t, func(t *testing.T) {
		limiter := pace.New(pace.Options{Max: [pace.Classes]int{1, 1, 1}})
		st := play(t, script{
			nfs3.NFSPROC3_GETATTR: func(int, *oncrpc.Call) xdr.Appender { return nil },
			nfs3.NFSPROC3_ACCESS:  always(&nfs3.ACCESS3res{}),
		}, v3.Options{Pace: limiter})
		start := time.Now()
		var calls sync.WaitGroup
		for range 10 {
			calls.Go(func() {
				if _, err := st.fs.GetAttr(t.Context(), handle(t, "file"), vfs.MaskV3); !errors.Is(err, oncrpc.ErrTimeout) {
					t.Errorf("%v", err)
				}
				if took := time.Since(start); took > 2*patience+time.Second {
					t.Errorf("given up after %v", took)
				}
			})
		}
		calls.Wait()
		for range 2 { // the second is limited again
			if _, _, err := st.fs.Access(t.Context(), handle(t, "file"), vfs.AccessRead); err != nil {
				t.Error(err)
			}
		}
		if s := limiter.Snapshot()[pace.Metadata]; s.InFlight != 0 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestPaceRefused has a silent server refuse the next call, by RPC itself: it is silent no
// longer, and the calls after that are limited again.
func TestPaceRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := pace.New(pace.Options{Max: [pace.Classes]int{1, 1, 1}})
		goOn := make(chan struct{})
		st := play(t, script{
			nfs3.NFSPROC3_GETATTR: func(int, *oncrpc.Call) xdr.Appender { return nil },
			nfs3.NFSPROC3_ACCESS: func(int, *oncrpc.Call) xdr.Appender {
				<-goOn
				return &nfs3.ACCESS3res{}
			},
		}, v3.Options{Pace: limiter})
		if _, err := st.fs.GetAttr(t.Context(), handle(t, "file"), vfs.MaskV3); !errors.Is(err, oncrpc.ErrTimeout) {
			t.Fatal(err)
		}
		_, _, err := st.fs.Readlink(t.Context(), handle(t, "link"))
		if _, refused := errors.AsType[*oncrpc.AcceptError](err); !refused {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			_, _, err := st.fs.Access(t.Context(), handle(t, "file"), vfs.AccessRead)
			done <- err
		}()
		synctest.Wait()
		if s := limiter.Snapshot()[pace.Metadata]; s.InFlight != 1 {
			t.Errorf("during the call: %+v", s)
		}
		close(goOn)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestPaceCancelled gives up a call that waits for its turn: it was never sent,
// and what it would have changed is as it was.
func TestPaceCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := pace.New(pace.Options{Max: [pace.Classes]int{1, 1, 1}})
		st := play(t, script{}, v3.Options{Pace: limiter})
		if err := limiter.Enter(t.Context(), pace.Metadata); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := st.fs.Remove(ctx, handle(t, "dir"), "x", true)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, oncrpc.ErrNotSent) || errors.Is(err, vfs.ErrUnknownOutcome) {
			t.Errorf("%v", err)
		}
		if n := st.rpc.Stats().Calls; n != 0 {
			t.Errorf("%d calls", n)
		}
		limiter.Leave(pace.Metadata, 0, 0, pace.Gone)
	})
}

// TestStatuses counts what the server answers, known or not.
func TestStatuses(t *testing.T) {
	st := play(t, script{nfs3.NFSPROC3_GETATTR: func(n int, _ *oncrpc.Call) xdr.Appender {
		return &nfs3.GETATTR3res{Status: [...]nfs3.Nfsstat3{0, nfs3.NFS3ERR_STALE, nfs3.NFS3ERR_STALE, nfs3.NFS3ERR_BADHANDLE, 4711, -5}[n-1]}
	}}, v3.Options{})
	for i := range 6 {
		if _, err := st.fs.GetAttr(t.Context(), handle(t, "file"), vfs.MaskV3); (err == nil) != (i == 0) {
			t.Errorf("%d: %v", i, err)
		}
	}
	got := st.fs.Statuses(nfs3.NFSPROC3_GETATTR)
	if len(got) != 3 || got[vfs.ErrStale] != 2 || got[vfs.ErrBadHandle] != 1 || got[0] != 2 {
		t.Errorf("%v", got)
	}
	if got := st.fs.Statuses(nfs3.NFSPROC3_READ); got != nil {
		t.Errorf("%v", got)
	}
}

// TestOpenStale looks a name up again whose object was replaced before it could
// be truncated, and only once; a handle of the caller's own it does not.
func TestOpenStale(t *testing.T) {
	for name, tc := range map[string]struct {
		stale int // how many SETATTRs
		at    vfs.At
		err   error
		looks int
	}{
		"replaced":       {1, vfs.At{Dir: handle(t, "dir"), Name: "x"}, nil, 2},
		"ever again":     {9, vfs.At{Dir: handle(t, "dir"), Name: "x"}, vfs.ErrStale, 2},
		"a stale handle": {9, vfs.At{H: handle(t, "gone")}, vfs.ErrStale, 0},
	} {
		t.Run(name, func(t *testing.T) {
			st := play(t, script{
				nfs3.NFSPROC3_LOOKUP: always(found("object", 1)),
				nfs3.NFSPROC3_SETATTR: func(n int, _ *oncrpc.Call) xdr.Appender {
					if n <= tc.stale {
						return &nfs3.SETATTR3res{Status: nfs3.NFS3ERR_STALE}
					}
					return &nfs3.SETATTR3res{}
				},
			}, v3.Options{})
			f, _, err := st.fs.Open(t.Context(), tc.at, &vfs.OpenHow{Access: vfs.ShareWrite, Trunc: true})
			if !errors.Is(err, tc.err) {
				t.Errorf("%v, want %v", err, tc.err)
			}
			if n := st.called(nfs3.NFSPROC3_LOOKUP); n != tc.looks {
				t.Errorf("%d LOOKUPs", n)
			}
			if err == nil {
				if err := f.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestPaceHard: hard calls that are never answered do not keep others waiting for ever.
func TestPaceHard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := pace.New(pace.Options{Max: [pace.Classes]int{2, 2, 2}})
		st := play(t, script{
			nfs3.NFSPROC3_GETATTR: func(int, *oncrpc.Call) xdr.Appender { return nil },
			nfs3.NFSPROC3_ACCESS:  always(&nfs3.ACCESS3res{}),
		}, v3.Options{Pace: limiter, Hard: true})
		unanswered, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() {
				if _, err := st.fs.GetAttr(unanswered, handle(t, "stuck"), vfs.MaskV3); !errors.Is(err, context.Canceled) {
					t.Errorf("%v", err)
				}
			})
		}
		synctest.Wait()
		ctx, done := context.WithTimeout(t.Context(), time.Hour)
		defer done()
		if _, _, err := st.fs.Access(ctx, handle(t, "other"), vfs.AccessRead); err != nil {
			t.Error(err)
		}
		cancel()
		calls.Wait()
		if s := limiter.Snapshot()[pace.Metadata]; s.InFlight != 0 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}
