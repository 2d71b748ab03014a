package transfer

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/pace"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// link is the way to a source: each read takes the delay, and then its turn.
type link struct {
	delay, each time.Duration
	turn        chan struct{}

	mu        sync.Mutex
	now, most int
}

func (l *link) fault(ctx context.Context, op string, _ vfs.Handle) error {
	if op != "read" {
		return nil
	}
	l.mu.Lock()
	l.now++
	l.most = max(l.most, l.now)
	l.mu.Unlock()
	time.Sleep(l.delay)
	l.turn <- struct{}{}
	time.Sleep(l.each)
	<-l.turn
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now--
	return ctx.Err()
}

// nearby is an FS whose files are near.
type nearby struct{ vfs.FS }

type nearbyFile struct{ vfs.File }

func (nearbyFile) Near() bool { return true }

func (f nearby) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	file, opened, err := f.FS.Open(ctx, at, how)
	return nearbyFile{file}, opened, err
}

// TestChunksInFlight: a file that comes from another host has as many chunks in flight as the
// bounds let it, and one that is near, or has been given a window, has few.
func TestChunksInFlight(t *testing.T) {
	const far = 100 * time.Millisecond
	for _, c := range []struct {
		name        string
		delay, each time.Duration
		near        bool
		window      int
		budget      int
		least, most int // chunks in flight
	}{
		{"near", time.Millisecond, 0, true, 0, 64, DefaultWindow, DefaultWindow},
		{"near, and slow", 0, 20 * time.Millisecond, true, 0, 64, DefaultWindow, DefaultWindow},
		{"far", far, 0, false, 0, 64, 48, 64}, // the budget leaves some to others
		{"far, without a budget", far, 0, false, 0, 0, MaxWindow, MaxWindow},
		{"far, with a window", far, 0, false, 3, 64, 3, 3},
		{"few chunks", far, 0, false, 0, 2, 2, 2},
	} {
		for what, run := range map[string]func(t *testing.T, dst *end, from Source, o *Options) error{
			"copy": func(t *testing.T, dst *end, from Source, o *Options) error {
				_, err := File(t.Context(), from, dst.target("f"), o)
				return err
			},
			"compare": func(t *testing.T, dst *end, from Source, o *Options) error {
				cmp, err := Compare(t.Context(), from, dst.file("f", pattern(500*MinChunk)), 500*MinChunk, o)
				if cmp.Differ {
					t.Errorf("%s: they differ at %d", c.name, cmp.Offset)
				}
				return err
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				l := &link{delay: c.delay, each: c.each, turn: make(chan struct{}, 1)}
				src, dst := mem(t, memfs.Options{Fault: l.fault}), mem(t, memfs.Options{})
				if c.near {
					src.fs, dst.fs = nearby{src.fs}, nearby{dst.fs}
				}
				o := options(t)
				o.Chunk, o.Window = MinChunk, c.window
				if c.budget > 0 {
					o.Budget = NewBudget(c.budget)
				}
				if err := run(t, dst, src.file("f", pattern(500*MinChunk)), o); err != nil {
					t.Error(err)
				}
				if l.most < c.least || l.most > c.most {
					t.Errorf("%s, %s: %d chunks in flight, want %d to %d", what, c.name, l.most, c.least, c.most)
				}
			})
		}
	}
}

// limited is the way to a source whose client has a limiter: a disk of so many places, and a
// line with a delay, over which bytes go one after another.
type limited struct {
	limit *pace.Limiter
	disk  chan struct{} // nil: it takes no time
	trip  time.Duration
	rate  float64 // bytes a second

	mu   sync.Mutex
	busy time.Time // until then bytes of others are on the line
	rnd  *rand.Rand
}

// diskTime is what the disk takes for a READ on average.
const diskTime = 8 * time.Millisecond

func (l *limited) fault(ctx context.Context, op string, _ vfs.Handle) error {
	if op != "read" {
		return nil
	}
	if err := l.limit.Enter(ctx, pace.Read); err != nil {
		return err
	}
	start := time.Now()
	if l.disk != nil {
		l.disk <- struct{}{}
		time.Sleep(time.Duration(float64(diskTime) * (0.5 + l.chance())))
		<-l.disk
	}
	time.Sleep(time.Duration(float64(l.line()) * (0.95 + l.chance()/10)))
	l.limit.Leave(pace.Read, time.Since(start), MaxChunk, pace.OK)
	return nil
}

// line is how long the bytes of one READ of MaxChunk take from now.
func (l *limited) line() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.busy.Before(now) {
		l.busy = now
	}
	l.busy = l.busy.Add(time.Duration(MaxChunk / l.rate * 1e9))
	return l.busy.Sub(now) + l.trip
}

func (l *limited) chance() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rnd.Float64()
}

// TestLimiterDecides: one file of 400 chunks keeps a line, or a disk, busy, near and far. The
// workers are but a bound; the limiter alone learns what the server does well with.
func TestLimiterDecides(t *testing.T) {
	for _, c := range []struct {
		trip   time.Duration
		rate   float64
		places int           // of the disk; 0: none takes part
		most   time.Duration // that the copy takes
	}{
		{time.Millisecond, 1e9, 0, 480 * time.Millisecond},          // 420 for the bytes
		{10 * time.Millisecond, 300e6, 0, 1600 * time.Millisecond},  // 1,400
		{100 * time.Millisecond, 400e6, 0, 1700 * time.Millisecond}, // 1,050, and a few round trips to find that out
		{time.Millisecond, 2e9, 8, 500 * time.Millisecond},          // 400 for the disk
		{20 * time.Millisecond, 2e9, 4, time.Second},                // 800
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &limited{limit: pace.New(pace.Options{}), trip: c.trip, rate: c.rate, rnd: rand.New(rand.NewPCG(1, 2))}
			if c.places > 0 {
				l.disk = make(chan struct{}, c.places)
			}
			src, dst, o := mem(t, memfs.Options{Fault: l.fault}), mem(t, memfs.Options{}), options(t)
			o.Chunk, o.Budget = MinChunk, NewBudget(64)
			from := src.file("f", pattern(400*MinChunk))
			start := time.Now()
			if _, err := File(t.Context(), from, dst.target("f"), o); err != nil {
				t.Error(err)
			}
			took := time.Since(start)
			t.Logf("%v, %.0e bytes a second, %d places: %v", c.trip, c.rate, c.places, took)
			if took > c.most {
				t.Errorf("%v, %.0e bytes a second, %d places: %v, want at most %v", c.trip, c.rate, c.places, took, c.most)
			}
		})
	}
}
