package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/hands"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/queue"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
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

// inVain is how many files of a worker are copied again, at most, when nobody hears of it any more: those that it has done
// and not reported, those in its hands, and what it begins until it notices. A file takes so long.
func inVain(file time.Duration) int64 {
	const unreported, inHands, next = 1, 1, 1
	return handsEach * int64(unreported+inHands+next+(reportAfter+hushAfter)/file)
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
		if killed < 2 || twice < 0 || twice > int64(killed)*2*handsEach { // in its hands, and not reported
			t.Errorf("%d workers of %d files at once were killed, and %d files copied twice", killed, handsEach, twice)
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
		const call, calls = 20 * time.Millisecond, 2 // of a file
		x.slowly(call, n.count)
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
		if twice, most := n.renames.Load()-1500, 2*inVain(call*calls); twice < 0 || twice > most {
			t.Errorf("%d files copied twice, want %d at most", twice, most)
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

// mute is a broker whose coordinator has gone silent, from some time on: questions wait for their answers in vain.
type mute struct {
	queue.Broker
	silent *atomic.Bool
}

func (m mute) Join(ctx context.Context, j queue.Job) (queue.Taker, error) {
	t, err := m.Broker.Join(ctx, j)
	return muteTaker{t, m.silent}, err
}

type muteTaker struct {
	queue.Taker
	silent *atomic.Bool
}

func (m muteTaker) Ask(ctx context.Context, q []byte) ([]byte, error) {
	if !m.silent.Load() {
		return m.Taker.Ask(ctx, q)
	}
	select {
	case <-time.After(queue.AskTime):
		return nil, queue.ErrNobody
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestSilentCoordinator: a coordinator has been killed with a question in its hands, which nobody says. Files that are
// begun before that is noticed are copied, and no more.
func TestSilentCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.fill(10, 100)
		var n counter
		const call, calls = 20 * time.Millisecond, 2 // of a file
		x.slowly(call, n.count)
		var silent atomic.Bool
		x.wrap = func(b queue.Broker) queue.Broker { return mute{b, &silent} }
		_, stop := x.worker(srcURL, dstURL)
		ctx, kill := context.WithCancel(t.Context())
		c := x.coordinate(nil)
		time.AfterFunc(1500*time.Millisecond, func() {
			silent.Store(true)
			before := n.renames.Load()
			time.Sleep(5 * time.Second)
			more := n.renames.Load() - before
			most := inVain(call * calls)
			if more > most || before == 0 {
				t.Errorf("%d files copied in vain, after %d; want %d at most", more, before, most)
			}
			kill()
		})
		if _, err := x.copy(ctx, c, nil); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		_ = c.Close()
		stop()
	})
}

// messy are hands of which each leaves a temporary, as a worker that was killed late.
type messy struct {
	hands.Own
	n atomic.Int64
}

func (*messy) AtOnce() int { return 8 }

func (m *messy) Copy(ctx context.Context, d *hands.Dir, src transfer.Source, dst transfer.Target, o *transfer.Options) (transfer.Result, error) {
	temp := fmt.Sprintf(".nfsbox-%s1a-2-%016x.tmp", job.TempTag(jobID), m.n.Add(1))
	how := vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}}
	f, _, err := dst.FS.Open(ctx, vfs.At{Dir: dst.Dir, Name: temp}, &vfs.OpenHow{Access: vfs.ShareWrite, Create: &how})
	if err != nil {
		return transfer.Result{}, err
	}
	if err := f.Close(ctx); err != nil {
		return transfer.Result{}, err
	}
	return m.Own.Copy(ctx, d, src, dst, o)
}

// TestLateTemporaries: what workers have left in a directory is gone when the job ends, also if it was made after all
// that looks for it before.
func TestLateTemporaries(t *testing.T) {
	x := newRig(t)
	x.fill(3, 5)
	s, err := x.copy(t.Context(), new(messy), nil)
	if s.ExitCode(err) != job.ExitDone {
		t.Fatalf("%v, %+v", err, s)
	}
	x.same()
}
