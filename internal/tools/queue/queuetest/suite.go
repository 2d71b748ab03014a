// Package queuetest is the suite that every broker of package queue passes.
//
// It waits for what has to come, and never sleeps to see that something did not: an item that
// must not come is shown by the next one, which is dealt behind it.
package queuetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

// patience bounds each wait for what has to come.
const patience = time.Minute

// Lab is a broker under test, its own for each test, and what can befall it.
type Lab struct {
	// Connect makes a connection. The test closes it.
	Connect func(t testing.TB) queue.Broker

	// Lease is what the broker has in place of queue.LeaseTime.
	Lease time.Duration

	// Forget has the broker lose all that it holds.
	Forget func(t testing.TB)

	// Outage makes the broker unreachable, with all that it holds, until back is called.
	Outage func(t testing.TB) (back func())

	// Forge puts an item into a run's queue as a stranger would: it may be too long.
	Forge func(t testing.TB, j queue.Job, it queue.Item)

	// ForgeJob puts a description into a run's queue, in place of the job's own, as a stranger would.
	ForgeJob func(t testing.TB, j queue.Job)
}

// Run runs the suite. in calls a test with a lab of its own, in the goroutine or the bubble that
// the test is to have.
func Run(t *testing.T, in func(t *testing.T, test func(t *testing.T, l *Lab))) {
	for name, test := range map[string]func(e *env){
		"deal":                 deal,
		"longest":              longest,
		"too-long":             tooLong,
		"names":                badJobs,
		"give-back":            giveBack,
		"lease-ends":           leaseEnds,
		"extend":               extend,
		"deal-again":           dealAgain,
		"many-takers":          manyTakers,
		"full":                 full,
		"forged":               forged,
		"foreign-lease":        foreignLease,
		"ask":                  ask,
		"ask-bounds":           askBounds,
		"ask-nobody":           askNobody,
		"ask-many":             askMany,
		"ask-two-runs":         askTwoRuns,
		"open-again":           openAgain,
		"announce":             announce,
		"later-run":            laterRun,
		"jobs":                 jobs,
		"jobs-bound":           jobsBound,
		"removed":              removed,
		"removed-while-taking": removedWhileTaking,
		"forgotten":            forgotten,
		"outage":               outage,
		"outage-cancelled":     outageCancelled,
		"outage-ask":           outageAsk,
		"cancelled":            cancelled,
		"cancelled-waits":      cancelledWaits,
		"closed":               closed,
		"closed-waits":         closedWaits,
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, l *Lab) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				t.Cleanup(cancel)
				test(&env{T: t, Lab: l, ctx: ctx})
			})
		})
	}
}

// env is a test, with what most of them do.
type env struct {
	*testing.T
	*Lab
	ctx context.Context // ends when patience does
}

// job is a run of a job, each of another text.
func job(name, text string) queue.Job {
	sum := sha256.Sum256([]byte(name + "\n" + text))
	return queue.Job{Name: name, Run: hex.EncodeToString(sum[:16]), Spec: []byte("spec of " + text)}
}

// connect is a connection until the test ends.
func (e *env) connect() queue.Broker {
	e.Helper()
	b := e.Connect(e.T)
	e.Cleanup(func() {
		if err := b.Close(); err != nil {
			e.Error(err)
		}
	})
	return b
}

// open opens a run's queue by a connection of its own.
func (e *env) open(j queue.Job) queue.Dealer {
	e.Helper()
	d, err := e.connect().Open(e.ctx, j)
	if err != nil {
		e.Fatal(err)
	}
	return d
}

// join joins a run by a connection of its own.
func (e *env) join(j queue.Job) queue.Taker {
	e.Helper()
	t, err := e.connect().Join(e.ctx, j)
	if err != nil {
		e.Fatal(err)
	}
	return t
}

// pair is both ends of a new run's queue.
func (e *env) pair() (queue.Job, queue.Dealer, queue.Taker) {
	e.Helper()
	j := job("copy", e.Name())
	return j, e.open(j), e.join(j)
}

// deal deals an item whose body is text.
func (e *env) deal(d queue.Dealer, id uint64, text string) {
	e.Helper()
	if err := d.Deal(e.ctx, queue.Item{ID: id, Body: []byte(text)}); err != nil {
		e.Fatalf("item %d is not dealt: %v", id, err)
	}
}

// take wants an item to come next.
func (e *env) take(t queue.Taker, id uint64, text string, attempt int) *queue.Lease {
	e.Helper()
	l, err := t.Take(e.ctx)
	if err != nil {
		e.Fatalf("item %d does not come: %v", id, err)
	}
	if l.ID != id || string(l.Body) != text || l.Attempt != attempt {
		e.Fatalf("item %d %.40q, attempt %d came; want %d %.40q, attempt %d", l.ID, l.Body, l.Attempt, id, text, attempt)
	}
	return l
}

// settle gives a lease back.
func (e *env) settle(t queue.Taker, l *queue.Lease, done bool) {
	e.Helper()
	if err := t.Settle(e.ctx, l, done); err != nil {
		e.Fatalf("item %d is not settled: %v", l.ID, err)
	}
}

// answer answers a run's questions until stop is called. It wants ctx's end to end that, and nothing else.
func (e *env) answer(d queue.Dealer, reply func(ctx context.Context, question []byte) []byte) (stop func()) {
	e.Helper()
	ctx, cancel := context.WithCancel(e.ctx)
	end := make(chan error, 1)
	go func() { end <- d.Answer(ctx, reply) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-end; ctx.Err() == nil || err == nil {
			e.Errorf("Answer has ended: %v", err)
		}
	}
	e.Cleanup(stop)
	return stop
}

// asked puts a question until somebody answers: Answer takes a moment to begin.
func (e *env) asked(t queue.Taker, question string) string {
	e.Helper()
	for {
		got, err := t.Ask(e.ctx, []byte(question))
		if err == nil {
			return string(got)
		}
		if !isNobody(err) {
			e.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}
