package worker

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/hands/wire"
	"github.com/nfsbox/nfsbox/internal/tools/queue"
	"github.com/nfsbox/nfsbox/vfs"
)

// line is a worker's broker, with what a test hears and does on the way.
type line struct {
	queue.Broker
	joined func()
	took   func()
	asks   func(ctx context.Context, q *wire.Question) error // an error is its answer
}

func (l line) Join(ctx context.Context, j queue.Job) (queue.Taker, error) {
	if l.joined != nil {
		l.joined()
	}
	t, err := l.Broker.Join(ctx, j)
	return lineTaker{t, l}, err
}

type lineTaker struct {
	queue.Taker
	l line
}

func (t lineTaker) Take(ctx context.Context) (*queue.Lease, error) {
	l, err := t.Taker.Take(ctx)
	if err == nil && t.l.took != nil {
		t.l.took()
	}
	return l, err
}

func (t lineTaker) Ask(ctx context.Context, text []byte) ([]byte, error) {
	if t.l.asks != nil {
		q, err := wire.Decode[wire.Question](text)
		if err == nil {
			err = t.l.asks(ctx, &q)
		}
		if err != nil {
			return nil, err
		}
	}
	return t.Taker.Ask(ctx, text)
}

// over has workers of the rig use such a line.
func (x *rig) over(l line) {
	x.wrap = func(b queue.Broker) queue.Broker {
		l.Broker = b
		return l
	}
}

// TestTwoParts: a broker that loses all does not end a worker's part in a run. If a coordinator is silent for too long, it does:
// the worker takes part once more then, as another one, so that nothing which the first part has said counts for it.
func TestTwoParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.fill(30, 50)
		var n counter
		const call = 40 * time.Millisecond
		x.slowly(call, n.count)
		var joins atomic.Int64
		var silent atomic.Bool
		var mu sync.Mutex
		parts := make(map[[16]byte]bool)
		x.over(line{joined: func() { joins.Add(1) }, asks: func(_ context.Context, q *wire.Question) error {
			if silent.Load() {
				return queue.ErrNobody
			}
			mu.Lock()
			defer mu.Unlock()
			if q.Matter.Ask == wire.CLAIM {
				parts[q.Worker] = true
			}
			return nil
		}})
		x.worker(srcURL, dstURL)
		seen := func(what string, want int) {
			mu.Lock()
			defer mu.Unlock()
			if len(parts) != want {
				t.Errorf("%s: %d parts, want %d", what, len(parts), want)
			}
		}
		time.AfterFunc(3*time.Second+time.Millisecond, func() {
			before := joins.Load()
			x.broker.Forget()
			time.Sleep(3 * time.Second)
			seen("the broker has lost all", 1)
			if again := joins.Load() - before; again != 0 {
				t.Errorf("joined %d times more", again)
			}
			silent.Store(true)
			time.Sleep(patience + 2*again)
			silent.Store(false)
			time.Sleep(3 * time.Second)
			seen("the coordinator was silent", 2)
		})
		x.finish(x.coordinate(nil), 1500)
		if twice, most := n.renames.Load()-1500, inVain(2*call); twice < 0 || twice > most {
			t.Errorf("%d files copied twice, want %d at most", twice, most)
		}
	})
}

// TestClaimedTwice: a batch that a worker has is not given away, also not to this worker once more: the broker may have leased it
// again. A question that comes twice gets the same answer.
func TestClaimedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.write("src/d/f", "x")
		c := x.coordinate(nil)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := x.copy(ctx, c, nil)
			done <- err
		}()
		taker, err := x.broker.Connect().Join(t.Context(), c.Job())
		if err != nil {
			t.Fatal(err)
		}
		l, err := taker.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		claim := func(once uint64) wire.Answer {
			return ask(t, x, c, &wire.Question{Speaks: wire.VERSION, Worker: [16]byte{1}, Matter: wire.Matter{Ask: wire.CLAIM, Claim: wire.Claim{Batch: l.ID, Digest: sha256.Sum256(l.Body), Once: once}}})
		}
		first := claim(1)
		if again := claim(1); again != first || first.Verdict != wire.GO {
			t.Errorf("%+v, and then %+v", first, again)
		}
		if a := claim(2); a.Verdict != wire.DROP {
			t.Errorf("a batch is begun anew that its worker has: %+v", a)
		}
		for range 3 { // others are heard of
			time.Sleep(beat)
			ask(t, x, c, &wire.Question{Speaks: wire.VERSION, Worker: [16]byte{2}, Matter: wire.Matter{Ask: wire.HELLO}})
		}
		if a := claim(3); a.Verdict != wire.GO || a.Attempt != 2 {
			t.Errorf("a batch of which nobody was heard of: %+v", a)
		}
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestFewAhead: a worker takes no more batches than its hands need, however long a claim takes.
func TestFewAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.plain(40, handsEach) // a file of two names is in the batch of either: the other's batch would leave a hand free
		var leased atomic.Int64
		let := make(chan struct{})
		x.over(line{took: func() { leased.Add(1) }, asks: func(ctx context.Context, q *wire.Question) error {
			if q.Matter.Ask == wire.CLAIM {
				select {
				case <-let:
				case <-ctx.Done():
				}
			}
			return nil
		}})
		x.worker(srcURL, dstURL)
		time.AfterFunc(3*time.Second, func() {
			if n := leased.Load(); n != 1 {
				t.Errorf("%d batches of %d files are leased for %d hands", n, handsEach, handsEach)
			}
			close(let)
		})
		x.finish(x.coordinate(nil), 40*handsEach)
	})
}

// TestSureOfBatch: a worker begins with no further file of a batch when the coordinator may have given it to another one, though
// it answers other questions.
func TestSureOfBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.fill(2, 100)
		var n counter
		const call, calls = 500 * time.Millisecond, 2 // of a file
		x.slowly(call, n.count)
		x.over(line{asks: func(ctx context.Context, q *wire.Question) error {
			if q.Matter.Ask == wire.REPORT {
				<-ctx.Done() // lost on the way
				return ctx.Err()
			}
			return nil
		}})
		_, kill := x.worker(srcURL, dstURL)
		ctx, stop := context.WithCancel(t.Context())
		c := x.coordinate(nil)
		time.AfterFunc(time.Minute, func() {
			const batches = 2
			most := int64(batches * handsEach * (1 + trust/(call*calls)))
			if copied := n.renames.Load(); copied == 0 || copied > most {
				t.Errorf("%d files copied of which nobody heard; want 1 to %d", copied, most)
			}
			kill()
			stop()
		})
		if _, err := x.copy(ctx, c, nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestLongOutage: nobody hears of anybody for longer than it takes a worker to count as gone. None does.
func TestLongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.fill(30, 50)
		var n counter
		x.slowly(40*time.Millisecond, n.count)
		x.worker(srcURL, dstURL)
		x.worker(srcURL, dstURL)
		time.AfterFunc(3*time.Second, func() {
			back := x.broker.Outage()
			time.Sleep(4 * queue.LeaseTime)
			back()
		})
		x.finish(x.coordinate(nil), 1500)
		if twice := n.renames.Load() - 1500; twice != 0 {
			t.Errorf("%d files copied twice", twice)
		}
	})
}

// TestForgedJob: somebody puts another description in the place of the job's. The worker refuses that one, and not the run: the
// coordinator puts its own back.
func TestForgedJob(t *testing.T) {
	for name, spec := range map[string]string{"elsewhere": "", "nothing": "no job", "too long": strings.Repeat("x", queue.MaxSpec+1)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newRig(t)
				x.fill(2, 20)
				c := x.coordinate(nil)
				forged := c.Job()
				if forged.Spec = []byte(spec); spec == "" {
					s := x.spec()
					s.Dest.Path = "/other"
					var err error
					if forged.Spec, err = s.Encode(); err != nil {
						t.Fatal(err)
					}
				}
				x.broker.ForgeJob(forged)
				x.worker(srcURL, dstURL)
				begin := time.Now()
				x.finish(c, 40)
				if took := time.Since(begin); took > queue.LeaseTime {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// heedful is a file system that renames nothing when ctx has ended, as clients of servers do.
type heedful struct {
	vfs.FS
	stuck bool // nor removes temporaries
}

func (h heedful) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	if h.stuck && strings.HasPrefix(name, ".nfsbox-") {
		return vfs.WCC{}, vfs.ErrIO
	}
	return h.FS.Remove(ctx, dir, name, isDir)
}

func (h heedful) Rename(ctx context.Context, fromDir vfs.Handle, from string, toDir vfs.Handle, to string) (a, b vfs.WCC, err error) {
	if ctx.Err() != nil {
		return a, b, ctx.Err()
	}
	return h.FS.Rename(ctx, fromDir, from, toDir, to)
}

// TestInterrupted: a job that is interrupted ends when its workers have removed their temporaries, and knows how many they could
// not remove. It does not wait for workers that were killed as long as for others.
func TestInterrupted(t *testing.T) {
	for name, c := range map[string]struct{ stuck, killed bool }{"all": {}, "stuck": {stuck: true}, "killed": {killed: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newRig(t)
				x.fill(20, 20)
				const call = 4 * time.Second
				slow := func(op string) {
					if op == "open" {
						time.Sleep(call)
					}
				}
				x.slow.Store(&slow)
				x.far = func(f vfs.FS) vfs.FS { return heedful{f, c.stuck} }
				x.worker(srcURL, dstURL)
				_, kill := x.worker(srcURL, dstURL)
				ctx, interrupt := context.WithCancel(t.Context())
				time.AfterFunc(13500*time.Millisecond, func() { // while temporaries are made: see slow
					if c.killed {
						go kill()
					}
					interrupt()
				})
				co := x.coordinate(nil)
				if _, err := x.copy(ctx, co, nil); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				begin := time.Now()
				if err := co.Close(); err != nil {
					t.Error(err)
				}
				if took := time.Since(begin); took > beat+2*call {
					t.Errorf("it took %v", took)
				}
				left := uint64(0) // a worker that was killed leaves what it had
				for _, name := range x.names("dst/copy") {
					if strings.Contains(name, ".nfsbox-") {
						left++
					}
				}
				if got := co.Left(); !c.killed && got != left || c.stuck != (got > 0) {
					t.Errorf("%d temporaries are left, and %d told", left, got)
				}
			})
		})
	}
}
