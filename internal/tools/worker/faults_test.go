package worker

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/hands"
	"github.com/nfsbox/nfsbox/internal/tools/job"
)

// slowly has what files are copied by take a while: two such calls a file. Others hold locks, and in a
// synctest bubble no time passes while a goroutine waits for one.
func (x *rig) slowly(d time.Duration, each func(op string)) {
	f := func(op string) {
		if op == "open" || op == "rename" {
			time.Sleep(d)
		}
		each(op)
	}
	x.slow.Store(&f)
}

// counter counts renames: each is a copy that got its name.
type counter struct{ renames atomic.Int64 }

func (c *counter) count(op string) {
	if op == "rename" {
		c.renames.Add(1)
	}
}

// finish runs the copy to its end, and checks that it is whole and nothing is left of temporaries.
func (x *rig) finish(c *hands.Coordinator, files uint64) {
	x.t.Helper()
	s, err := x.copy(x.t.Context(), c, nil)
	if cerr := c.Close(); cerr != nil {
		x.t.Error(cerr)
	}
	if s.ExitCode(err) != job.ExitDone || s.Files+s.Skipped != files {
		x.t.Fatalf("%v, %+v", err, s)
	}
	x.slow.Store(nil)
	x.same()
	for _, name := range x.names("dst/copy") {
		if strings.Contains(name, ".nfsbox-") {
			x.t.Errorf("left behind: %s", name)
		}
	}
}

// TestKilledWorkers: a worker is killed every five seconds, and another begins. Only the files that it had in
// its hands, or had just finished, are copied again.
func TestKilledWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.fill(30, 100)
		var n counter
		x.slowly(20*time.Millisecond, n.count)
		c := x.coordinate(nil)
		done := make(chan struct{})
		var killer sync.WaitGroup
		killed := 0
		killer.Go(func() {
			x.worker(srcURL, dstURL)
			for {
				_, kill := x.worker(srcURL, dstURL)
				select {
				case <-done:
					return
				case <-time.After(5*time.Second + 10*time.Millisecond): // in the middle of calls
					kill()
					killed++
				}
			}
		})
		x.finish(c, 3000)
		close(done)
		killer.Wait()
		twice := n.renames.Load() - 3000
		t.Logf("%d workers killed, %d files copied twice", killed, twice)
		if killed < 2 || twice < 0 || twice > int64(killed)*16 {
			t.Errorf("%d workers of 8 files at once were killed, and %d files copied twice", killed, twice)
		}
	})
}

// TestForgetfulBroker: the broker loses all that it has, twice, and cannot be reached for a while.
func TestForgetfulBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.fill(30, 50)
		var n counter
		x.slowly(20*time.Millisecond, n.count)
		x.worker(srcURL, dstURL)
		x.worker(srcURL, dstURL)
		go func() {
			time.Sleep(3 * time.Second)
			x.broker.Forget()
			time.Sleep(3 * time.Second)
			back := x.broker.Outage()
			time.Sleep(4 * time.Second)
			x.broker.Forget()
			back()
		}()
		x.finish(x.coordinate(nil), 1500)
		if twice := n.renames.Load() - 1500; twice != 0 {
			t.Errorf("%d files copied twice", twice)
		}
	})
}

// TestCoordinatorAgain: a coordinator is killed in the middle, and run again. What it has recorded is not
// copied again.
func TestCoordinatorAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.fill(30, 50)
		var n counter
		x.slowly(20*time.Millisecond, n.count)
		x.worker(srcURL, dstURL)
		x.worker(srcURL, dstURL)
		ctx, kill := context.WithCancel(t.Context())
		go func() {
			time.Sleep(4 * time.Second)
			kill()
		}()
		c := x.coordinate(nil)
		if _, err := x.copy(ctx, c, nil); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		x.abandon(c)
		x.finish(x.coordinate(nil), 1500)
		if twice := n.renames.Load() - 1500; twice > 40 {
			t.Errorf("%d files copied twice", twice)
		}
	})
}

// TestForgottenQueue: the broker loses its queues while no worker is there, or when none has anything to do. The next
// worker finds the job all the same.
func TestForgottenQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.fill(2, 50)
		c := x.coordinate(nil)
		go func() {
			time.Sleep(time.Second)
			x.broker.Forget()
			time.Sleep(time.Second)
			x.worker(srcURL, dstURL)
		}()
		begin := time.Now()
		x.finish(c, 100)
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
