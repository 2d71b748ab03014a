package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/rusage"
)

const (
	// cleanUpTime bounds what the removal of files may take. Files that are not
	// gone by then stay, and the error says so.
	cleanUpTime = 30 * time.Second

	// dropTime bounds the removal of one temporary whose upload has failed; at the
	// bound it stays for clean. So long, too, calls that make something outlast the
	// run's context. Twice this and cleanUpTime bound how long Run goes on after its
	// context has ended.
	dropTime = 5 * time.Second
)

// Run measures what o says. If operations have failed, or the context has ended,
// the Result holds what was counted until then. Errors Is ErrUsage or
// ErrUnreachable, or are what went wrong besides operations; the Result is nil
// if nothing was measured.
func Run(ctx context.Context, o Options) (res *Result, err error) {
	v, err := verbOf(o.Verb)
	if err != nil {
		return nil, err
	}
	if err := o.complete(v); err != nil {
		return nil, err
	}
	server, err := observe(ctx, &o)
	if err != nil {
		return nil, fmt.Errorf("bench %s: %w", o.Verb, err)
	}
	defer server.close()
	w, err := v.start(ctx, &o)
	if err != nil {
		return nil, fmt.Errorf("bench %s: %w", o.Verb, cutShort(ctx, err))
	}
	r := &run{o: &o, verb: v, work: w, server: server}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
		defer cancel()
		for _, c := range r.callers {
			err = errors.Join(err, c.close(ctx))
		}
		err = errors.Join(err, w.end(ctx))
	}()
	return r.all(ctx)
}

// cutShort is err of a preparation, with the end of ctx if that was the reason. A call
// that outlasts ctx says what became of itself alone.
func cutShort(ctx context.Context, err error) error {
	if cut := ctx.Err(); cut != nil && !errors.Is(err, cut) {
		return fmt.Errorf("%w: %w", cut, err)
	}
	return err
}

// run is a Run under way.
type run struct {
	o       *Options
	verb    *verb
	work    work
	callers []caller
	server  *observer // nil: the server's process is not seen
}

func (r *run) all(ctx context.Context) (*Result, error) {
	for i := range r.o.Concurrency {
		c, err := r.work.caller(ctx, i)
		if err != nil {
			return nil, fmt.Errorf("bench %s: %w", r.o.Verb, cutShort(ctx, err))
		}
		r.callers = append(r.callers, c)
	}
	warm := newPart(r.o, r.callers)
	if r.o.WarmUp > 0 {
		if r.o.Count != 0 {
			warm.limit(max(r.o.Count/warmUpShare, 1), r.o.Batch)
		}
		warm.until = r.o.WarmUp
		if r.o.Duration != 0 {
			warm.until = min(warm.until, r.o.Duration)
		}
		warm.run(ctx, nil)
		if err := warm.ended(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("bench %s: warm-up: %w", r.o.Verb, err), asError(warm.faults.all()))
		}
	}
	if w, ok := r.work.(measurer); ok {
		w.measure()
	}
	// Garbage of the preparations is not to be collected in measured time.
	runtime.GC()
	p := newPart(r.o, r.callers)
	p.limit(r.o.Count, r.o.Batch)
	p.until = r.o.Duration
	return r.measure(ctx, p, warm)
}

func (r *run) measure(ctx context.Context, p, warm *part) (*Result, error) {
	var first *page
	if r.server != nil {
		var err error
		if _, first, err = r.server.look(ctx, func(*page) bool { return true }); err != nil {
			return nil, fmt.Errorf("the server's process: %w", err)
		}
	}
	before, err := r.read()
	if err != nil {
		return nil, err
	}
	stop := r.server.watch(ctx)
	p.run(ctx, r.o.Each)
	stop()
	after, err := r.read()
	res := r.result(p, warm)
	res.cost(before, after)
	gone := p.ended(ctx)
	if res.Complete = gone == nil; !res.Complete {
		err = errors.Join(fmt.Errorf("bench %s: %w", r.o.Verb, gone), err)
	}
	if r.server == nil {
		return res, err
	}
	return res, errors.Join(err, r.seen(ctx, res, first))
}

// seen fills in what the server has done since the first look.
func (r *run) seen(ctx context.Context, res *Result, first *page) error {
	now, last, err := r.server.look(ctx, func(p *page) bool { return p.has(res.ClientCalls, first) })
	if err != nil {
		return fmt.Errorf("the server's process: %w", err)
	}
	last.cpu = now.cpu // without what was spent since the run has ended
	res.serverCost(r.verb, r.server, first, last)
	return nil
}

// reading is what all counters besides the operations' stand at.
type reading struct {
	client  rusage.Time
	allocs  uint64 // objects
	bytes   uint64 // allocated
	counted counters
}

func (r *run) read() (reading, error) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	x := reading{allocs: m.Mallocs, bytes: m.TotalAlloc, counted: r.work.counters()}
	var err error
	x.client, err = rusage.CPU()
	return x, err
}
