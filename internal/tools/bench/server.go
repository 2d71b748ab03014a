package bench

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"time"
)

const (
	// threadsTime is the time between two looks at the server's threads.
	threadsTime = 100 * time.Millisecond
	// pageTime is the same where they are asked for over HTTP.
	pageTime = time.Second
)

// observer watches the server's process, as far as it can be seen.
type observer struct {
	pid     int
	metrics string
	http    *http.Client

	peak int // threads, while watched
}

// observe makes the observer of o; nil if there is nothing to be seen.
func observe(ctx context.Context, o *Options) (*observer, error) {
	if o.ServerPID == 0 && o.ServerMetrics == "" {
		return nil, nil
	}
	w := &observer{pid: o.ServerPID, metrics: o.ServerMetrics}
	if w.pid != 0 {
		if _, _, err := process(w.pid); err != nil {
			return nil, usage("the server's process: %w", err)
		}
	}
	if w.metrics == "" {
		return w, nil
	}
	w.http = &http.Client{Transport: &http.Transport{}}
	if _, err := fetch(ctx, w.http, w.metrics); err != nil {
		w.close()
		return nil, unreachable(ctx, "the server's metrics", err)
	}
	return w, nil
}

// close ends the connections. It may be called for nil.
func (w *observer) close() {
	if w != nil && w.http != nil {
		w.http.CloseIdleConnections()
	}
}

// look says what the server has taken so far, at once, and then what it has taken
// and done when its counts stand still and are all that is wanted, or do not come to
// be: looking costs it something, too.
func (w *observer) look(ctx context.Context, all func(*page) bool) (now, still *page, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), metricsTime)
	defer cancel()
	if now, err = w.read(ctx); err != nil {
		return nil, nil, err
	}
	still = now
	for range settleTries {
		if w.metrics == "" {
			break
		}
		select {
		case <-time.After(settleTime):
		case <-ctx.Done():
			return now, still, nil
		}
		before := still.calls
		if still, err = w.read(ctx); err != nil {
			return nil, nil, err
		}
		if maps.Equal(still.calls, before) && all(still) {
			break
		}
	}
	return now, still, nil
}

func (w *observer) read(ctx context.Context) (p *page, err error) {
	var cpu time.Duration
	var threads int
	if w.pid != 0 {
		if cpu, threads, err = process(w.pid); err != nil {
			return nil, err
		}
	}
	p = &page{}
	if w.metrics != "" {
		if p, err = fetch(ctx, w.http, w.metrics); err != nil {
			return nil, err
		}
	}
	if w.pid != 0 {
		p.cpu, p.threads = cpu, threads
	}
	w.peak = max(w.peak, p.threads)
	return p, nil
}

// watch notes how many threads the server has until stop is called. What cannot be
// seen meanwhile shows at the end. It may be called for nil.
func (w *observer) watch(ctx context.Context) (stop func()) {
	if w == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	every := pageTime
	if w.pid != 0 {
		every = threadsTime
	}
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.peak = max(w.peak, w.threads(ctx))
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

func (w *observer) threads(ctx context.Context) int {
	if w.pid != 0 {
		_, n, err := process(w.pid)
		if err != nil {
			return 0
		}
		return n
	}
	p, err := fetch(ctx, w.http, w.metrics)
	if err != nil {
		return 0
	}
	return p.threads
}

// serverCost fills in what the server took between two looks, and holds its counts
// against those of the client.
func (res *Result) serverCost(v *verb, w *observer, before, after *page) {
	if w.peak != 0 {
		threads := w.peak
		res.ServerThreads = &threads
	}
	if after.restarted(before) {
		return // these are figures of two processes
	}
	if after.cpu != 0 {
		took := after.cpu - before.cpu
		perOp, seconds := per(micros(took), float64(res.Ops)), took.Seconds()
		res.CPU.ServerPerOp, res.CPU.Server = &perOp, &seconds
	}
	if w.metrics == "" {
		return
	}
	var sum uint64
	res.ServerCalls = since(before.calls, after.calls)
	for _, n := range res.ServerCalls {
		sum += n
	}
	res.ServerOps = &sum
	if res.Complete && res.Retransmits == 0 {
		// What was cut off, or sent twice, the server may have counted or not.
		res.CountsMatch = countsMatch(v, res)
	}
}

// has reports whether at least these calls were counted since before.
func (p *page) has(calls map[string]uint64, before *page) bool {
	for name, n := range calls {
		if p.calls[name]-before.calls[name] < n {
			return false
		}
	}
	return true
}

// restarted reports whether p is of another process than before: what only grows
// has become less.
func (p *page) restarted(before *page) bool {
	for name, n := range before.calls {
		if p.calls[name] < n {
			return true
		}
	}
	return p.cpu < before.cpu
}

// countsMatch reports whether the server has counted what the client has, and as
// many operations as were counted here; nil if there was nothing to count.
func countsMatch(v *verb, res *Result) *bool {
	var keys uint64
	side, compared := v.calls[0], v.calls[0] != nil && res.Ops+res.Errors != 0
	if isAPI(res.URL) {
		side = v.calls[1]
	}
	for _, name := range side {
		keys += res.ServerCalls[name]
	}
	match := len(side) == 0 || keys == res.Ops+res.Errors
	if !v.cold { // the listing of such a verb is under way when it begins
		for name, n := range res.ClientCalls {
			compared = true
			match = match && res.ServerCalls[name] == n
		}
	}
	if match && !compared {
		return nil
	}
	return &match
}

func since(before, after map[string]uint64) map[string]uint64 {
	x := make(map[string]uint64)
	for name, n := range after {
		if n > before[name] {
			x[name] = n - before[name]
		}
	}
	return x
}
