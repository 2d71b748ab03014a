package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/metric"
)

const (
	// maxShards bounds the histograms that callers count in; more callers share
	// them.
	maxShards = 64

	// maxBatch bounds how many operations a caller takes at once from those that
	// are left, so that taking costs nothing and all callers end together.
	maxBatch = 64
	// batches is into how many batches, at least, the operations are divided.
	batches = 64

	// maxFailures bounds how many operations in a row, of each caller, may fail
	// without a success of any. At the bound the run ends: the server is gone.
	maxFailures = 16

	// silence is how long an operation has to have gone on for its failure to weigh as
	// much as maxFailures: the client has tried again all the time. When those of all
	// callers have failed so, and none has succeeded, the run ends, and what is under
	// way is cut off, which would only wait for as long once more.
	silence = 30 * time.Second

	// sampleTime is the time between two Samples.
	sampleTime = time.Second
)

// part is the warm-up or the measured part.
type part struct {
	callers []caller
	clock   func() time.Duration
	start   time.Duration
	until   time.Duration // the longest; 0: no limit
	took    time.Duration

	bounded bool         // left counts
	left    atomic.Int64 // operations that nobody has taken
	batch   int64

	shards   []shard
	faults   faults
	inRow    atomic.Int64 // failures since the last success
	mostRow  int64
	stopping atomic.Bool
	silent   atomic.Int64 // not 0: the run was ended for an operation that took so long
	cut      func()       // cuts off what is under way
}

// shard is what some callers count in.
type shard struct {
	latency metric.Histogram // nanoseconds, of successes
	bytes   atomic.Uint64
	entries atomic.Uint64
}

func newPart(o *Options, callers []caller) *part {
	return &part{
		callers: callers, clock: o.Clock,
		shards:  make([]shard, min(len(callers), maxShards)),
		mostRow: int64(len(callers)) * maxFailures,
	}
}

// limit bounds the operations of the part, in whole batches; 0 is no bound.
func (p *part) limit(n uint64, batch int) {
	p.bounded = n != 0
	n = (n + uint64(batch) - 1) / uint64(batch)
	p.left.Store(int64(n))
	p.batch = min(max(int64(n)/int64(len(p.callers)*batches), 1), maxBatch)
}

// run runs the callers until the part is over. each, if it is not nil, gets
// samples.
func (p *part) run(ctx context.Context, each func(Sample)) {
	ctx, p.cut = context.WithCancel(ctx)
	defer p.cut()
	stop := make(chan struct{})
	var sampler, callers sync.WaitGroup
	p.start = p.clock()
	if each != nil {
		sampler.Go(func() { p.sample(stop, each) })
	}
	for i, c := range p.callers {
		callers.Go(func() {
			p.loop(ctx, c, &p.shards[i%len(p.shards)])
			if err := c.flush(ctx); err != nil && ctx.Err() == nil {
				p.faults.add(err)
			}
		})
	}
	callers.Wait()
	p.took = p.clock() - p.start
	close(stop)
	sampler.Wait()
}

// loop is one caller's part. The clock is read once an operation: the end of one
// is the start of the next.
func (p *part) loop(ctx context.Context, c caller, s *shard) {
	last, taken := p.clock(), int64(0)
	for p.next(last, &taken) {
		m, err := c.op(ctx)
		now := p.clock()
		if errors.Is(err, errDone) || err != nil && ctx.Err() != nil {
			return // what was cut off says nothing about the server
		}
		if err != nil {
			p.failed(err, now-last)
		}
		if err == nil || m.calls != 0 {
			p.succeeded(s, m, now-last)
		}
		last = now
	}
}

// succeeded counts an operation, or the calls of a batch, each of which took as
// long as all of them.
func (p *part) succeeded(s *shard, m moved, took time.Duration) {
	for range max(m.calls, 1) {
		s.latency.Record(uint64(max(took, 0)))
	}
	if m.bytes != 0 {
		s.bytes.Add(m.bytes)
	}
	if m.entries != 0 {
		s.entries.Add(m.entries)
	}
	if p.inRow.Load() != 0 {
		p.inRow.Store(0)
	}
}

// failed counts an operation that has failed, or those calls of a batch that have.
func (p *part) failed(err error, took time.Duration) {
	var batch batchError
	if !errors.As(err, &batch) {
		batch = batchError{err}
	}
	for _, err := range batch {
		p.faults.add(err)
	}
	weight := int64(1)
	if took >= silence {
		weight = maxFailures
	}
	if p.inRow.Add(weight) < p.mostRow {
		return
	}
	p.stopping.Store(true)
	if took >= silence {
		p.silent.Store(int64(took))
		p.cut()
	}
}

// next reports whether a caller shall make another operation. taken is how many
// it has taken and not yet made.
func (p *part) next(now time.Duration, taken *int64) bool {
	if p.until != 0 && now-p.start >= p.until || p.stopping.Load() {
		return false
	}
	if !p.bounded {
		return true
	}
	if *taken == 0 {
		if p.left.Load() <= 0 {
			return false
		}
		left := p.left.Add(-p.batch)
		if *taken = p.batch + min(left, 0); *taken <= 0 {
			return false
		}
	}
	*taken--
	return true
}

// ended is why the part ended before its time, if it did.
func (p *part) ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if took := time.Duration(p.silent.Load()); took != 0 {
		return fmt.Errorf("gave up: no operation has succeeded for %v; nfsbox doctor may say why", took.Round(time.Second))
	}
	if p.stopping.Load() {
		return fmt.Errorf("gave up after %d failures in a row", p.mostRow)
	}
	return nil
}

func (p *part) counted() (latency *metric.Snapshot, m moved) {
	latency = new(metric.Snapshot)
	for i := range p.shards {
		s := &p.shards[i]
		latency.Add(s.latency.Snapshot())
		m.bytes += s.bytes.Load()
		m.entries += s.entries.Load()
	}
	return latency, m
}

// sample calls each every second until stop.
func (p *part) sample(stop <-chan struct{}, each func(Sample)) {
	tick := time.NewTicker(sampleTime)
	defer tick.Stop()
	var before Sample
	past, at := new(metric.Snapshot), p.start
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		latency, m := p.counted()
		now := p.clock()
		s := Sample{
			Seconds: (now - p.start).Seconds(), Ops: latency.Count, Errors: p.faults.total(), Bytes: m.bytes, Entries: m.entries,
		}
		span := (now - at).Seconds()
		s.OpsPerSecond = per(float64(s.Ops-before.Ops), span)
		s.BytesPerSecond = per(float64(s.Bytes-before.Bytes), span)
		s.EntriesPerSecond = per(float64(s.Entries-before.Entries), span)
		recent := *latency
		recent.Sub(past)
		recent.Max = latency.Max
		s.Latency = latencyOf(&recent)
		each(s)
		before, past, at = s, latency, now
	}
}
