package bench

import (
	"context"
	"fmt"
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
		return nil, fmt.Errorf("the server's metrics: %w: %w", ErrUnreachable, err)
	}
	return w, nil
}

// close ends the connections. It may be called for nil.
func (w *observer) close() {
	if w != nil && w.http != nil {
		w.http.CloseIdleConnections()
	}
}

// look says what the server has taken and done so far.
func (w *observer) look(ctx context.Context) (p *page, err error) {
	p = &page{}
	if w.metrics != "" {
		if p, err = w.settled(ctx); err != nil {
			return nil, err
		}
	}
	if w.pid != 0 {
		if p.cpu, p.threads, err = process(w.pid); err != nil {
			return nil, err
		}
	}
	w.peak = max(w.peak, p.threads)
	return p, nil
}

// settled is the page when its counts stand still.
func (w *observer) settled(ctx context.Context) (*page, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), metricsTime)
	defer cancel()
	p, err := fetch(ctx, w.http, w.metrics)
	for range settleTries {
		if err != nil {
			return nil, err
		}
		select {
		case <-time.After(settleTime):
		case <-ctx.Done():
			return p, nil
		}
		before := p.calls
		if p, err = fetch(ctx, w.http, w.metrics); err == nil && maps.Equal(p.calls, before) {
			break
		}
	}
	return p, err
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
	if after.cpu >= before.cpu {
		took := after.cpu - before.cpu
		perOp, seconds := per(micros(took), float64(res.Ops)), took.Seconds()
		res.CPU.ServerPerOp, res.CPU.Server = &perOp, &seconds
	}
	if w.peak != 0 {
		threads := w.peak
		res.ServerThreads = &threads
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
	if !res.Complete || res.Retransmits != 0 {
		return // what was cut off, or sent twice, the server may have counted or not
	}
	match := countsMatch(v, res)
	res.CountsMatch = &match
}

// countsMatch reports whether the server has counted what the client has, and as
// many operations as were counted here.
func countsMatch(v *verb, res *Result) bool {
	var keys uint64
	side := v.calls[0]
	if isAPI(res.URL) {
		side = v.calls[1]
	}
	for _, name := range side {
		keys += res.ServerCalls[name]
	}
	if len(side) != 0 && keys != res.Ops+res.Errors {
		return false
	}
	if v.cold {
		return true // its listing is under way when it begins
	}
	for name, n := range res.ClientCalls {
		if res.ServerCalls[name] != n {
			return false
		}
	}
	return true
}

// since is what was counted between two readings.
func since(before, after map[string]uint64) map[string]uint64 {
	x := make(map[string]uint64)
	for name, n := range after {
		if n > before[name] {
			x[name] = n - before[name]
		}
	}
	return x
}
