package pace

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

const ms = time.Millisecond

// callers is how many offer calls: always more than the best limit.
const callers = 300

// fixed are the limits that the adaptive one is held against.
var fixed = []int{2, 4, 8, 16, 32, 64, 128, 256}

// server is one kind of server, and what of the best fixed limit's goodput, in
// percent, the adaptive one must reach there.
type server struct {
	name    string
	goodput float64
	slow    bool // p99 must be at most half of what 256 calls at once give
	service []service
}

func servers() []server {
	return []server{
		{"memory", 95, false, []service{{slots: 2, spent: about(60*time.Microsecond, 0.5)}}},
		{"16 slots of 1 ms", 95, true, []service{{slots: 16, spent: about(ms, 0.2)}}},
		{"16 slots of 1 ms, worse with a queue", 95, true, []service{{slots: 16, spent: about(ms, 0.2), worse: 0.1}}},
		{"4 slots of 10 ms", 95, true, []service{{slots: 4, spent: about(10*ms, 0.05)}}},
		{"4 slots of 10 ms, exactly", 95, true, []service{{slots: 4, spent: about(10*ms, 0)}}},
		{"128 slots of 5 ms", 95, false, []service{{slots: 128, spent: about(5*ms, 0.05)}}},
		{"16 slots of 0.2 or 8 ms", 95, true, []service{{slots: 16, spent: either(200*time.Microsecond, 8*ms, 0.5)}}},
		{"16 slots, one call in ten 8 ms", 95, true, []service{{slots: 16, spent: either(200*time.Microsecond, 8*ms, 0.9)}}},
		{"64 slots of 100 ms", 95, false, []service{{slots: 64, spent: about(100*ms, 0.2)}}},
		{"10 slots of 100 ms", 95, true, []service{{slots: 10, spent: about(100*ms, 0.2)}}},
		// Goodput of disks with a queue each grows on and on with the limit, and
		// latency with it: the last of it is not worth its price.
		{"12 disks of 6 ms", 65, true, []service{{slots: 12, spent: about(6*ms, 1), own: true}}},
	}
}

// steps is a server that becomes slow for a while.
func steps() []service {
	return []service{
		{slots: 64, spent: about(ms, 0.2)},
		{from: 4 * time.Second, slots: 8, spent: about(5*ms, 0.05)},
		{from: 7 * time.Second, slots: 64, spent: about(ms, 0.2)},
	}
}

// seeds is how often a simulation is repeated.
func seeds() uint64 {
	if os.Getenv("NFSBOX_SOAK") != "" {
		return 20
	}
	return 5
}

// simulates is for tests with one goroutine alone, in which no race is to be found
// and which take long when one is looked for.
func simulates(t *testing.T) {
	t.Helper()
	if need.Race || testing.Short() {
		t.Skip("simulations take long")
	}
}

// newWorld has hiccups, as virtual machines have.
func newWorld(seed uint64, s []service) *world {
	return &world{rnd: rand.New(rand.NewPCG(seed, 1)), service: s, wire: 100 * time.Microsecond, stalls: true}
}

// alone runs one client for so long.
func alone(seed uint64, s []service, limit int, long time.Duration) *simClient {
	w := newWorld(seed, s)
	c := w.add(limit, callers)
	w.run(long)
	return c
}

// bestFixed is what the best fixed limit gives, and the p99 of the highest.
func bestFixed(s []service) (ops float64, p99 time.Duration) {
	for _, limit := range fixed {
		r := alone(0, s, limit, 4*time.Second).between(time.Second, 4*time.Second)
		ops, p99 = max(ops, r.ops), r.p99
	}
	return ops, p99
}

func median[T int | float64 | time.Duration](v []T) T {
	slices.Sort(v)
	return v[len(v)/2]
}

// TestGoodput holds the adaptive limit against all fixed ones, on each server.
func TestGoodput(t *testing.T) {
	simulates(t)
	for _, s := range servers() {
		t.Run(s.name, func(t *testing.T) {
			best, deep := bestFixed(s.service)
			var goodput []float64
			var p99, mean []time.Duration
			for seed := range seeds() {
				r := alone(seed, s.service, 0, 10*time.Second).between(2*time.Second, 10*time.Second)
				goodput, p99, mean = append(goodput, 100*r.ops/best), append(p99, r.p99), append(mean, r.mean)
			}
			got, late := median(goodput), median(p99)
			t.Logf("goodput %.1f%% (%.1f to %.1f) of %.0f/s; mean %v, p99 %v, where 256 give %v",
				got, goodput[0], goodput[len(goodput)-1], best, median(mean), late, deep)
			if got < s.goodput {
				t.Errorf("goodput is %.1f%% of the best fixed limit's, want %v%%", got, s.goodput)
			}
			if s.slow && 2*late > deep {
				t.Errorf("p99 is %v, and 256 at once give %v", late, deep)
			}
		})
	}
}

// TestSteps: a server slows down, and recovers.
func TestSteps(t *testing.T) {
	simulates(t)
	best := 0.0
	for _, limit := range []int{8, 64, 128, 256} {
		best = max(best, alone(0, steps(), limit, 10*time.Second).between(2*time.Second, 10*time.Second).ops)
	}
	slow := alone(0, steps()[1:2], 8, 6*time.Second).between(5*time.Second, 6*time.Second).mean
	whole := alone(0, steps(), 64, 8*time.Second).between(7*time.Second, 8*time.Second).ops
	var goodput, soon []float64
	var late []time.Duration
	for seed := range seeds() {
		c := alone(seed, steps(), 0, 10*time.Second)
		goodput = append(goodput, 100*c.between(2*time.Second, 10*time.Second).ops/best)
		soon = append(soon, 100*c.between(7*time.Second, 7200*ms).ops/whole)
		late = append(late, c.between(5*time.Second, 7*time.Second).mean)
	}
	got, lat, again := median(goodput), median(late), median(soon)
	t.Logf("goodput %.1f%% (%.1f to %.1f), in the first 200 ms of recovery %.1f%%; while slow a call takes %v (up to %v), at the best limit %v",
		got, goodput[0], goodput[len(goodput)-1], again, lat, late[len(late)-1], slow)
	if got < 95 {
		t.Errorf("goodput is %.1f%% of the best fixed limit's", got)
	}
	if again < 75 {
		t.Errorf("in the first 200 ms after the server has recovered, goodput is %.1f%% of what it can be", again)
	}
	if 2*lat > 3*slow {
		t.Errorf("one second after the step a call takes %v, at the best limit %v", lat, slow)
	}
}

// TestColdCache: a server whose cache has answered, and whose many disks do from then
// on, takes a hundred times as long and has no queue. The limit grows all the same.
func TestColdCache(t *testing.T) {
	simulates(t)
	for _, took := range []time.Duration{12 * ms, 20 * ms, 30 * ms} {
		disks := service{slots: 128, spent: about(took, 0.1)}
		best := alone(0, []service{disks}, 128, 4*time.Second).between(time.Second, 4*time.Second).ops
		disks.from = 3 * time.Second
		var goodput []float64
		for seed := range seeds() {
			c := alone(seed, []service{{slots: 16, spent: about(200*time.Microsecond, 0.2)}, disks}, 0, 12*time.Second)
			goodput = append(goodput, 100*c.between(6*time.Second, 12*time.Second).ops/best)
		}
		got := median(goodput)
		t.Logf("%v: goodput %.1f%% (%.1f to %.1f)", took, got, goodput[0], goodput[len(goodput)-1])
		if got < 90 {
			t.Errorf("three seconds after calls take %v, goodput is %.1f%% of the best fixed limit's", took, got)
		}
	}
}

// TestSharing: two clients get about the same, whichever was first, and together
// all that there is.
func TestSharing(t *testing.T) {
	simulates(t)
	for _, s := range []server{servers()[1], servers()[2], servers()[4], servers()[5]} {
		for _, late := range []time.Duration{0, time.Second} {
			t.Run(fmt.Sprint(s.name, ", the second after ", late), func(t *testing.T) {
				best := alone(0, s.service, 256, 4*time.Second).between(time.Second, 4*time.Second).ops
				var share, goodput []float64
				var lat []time.Duration
				for seed := range seeds() {
					w := newWorld(seed, s.service)
					for i := range 2 {
						w.add(0, callers).since = late * time.Duration(i)
					}
					w.run(10 * time.Second)
					a := w.all[0].between(2*time.Second, 10*time.Second)
					b := w.all[1].between(2*time.Second, 10*time.Second)
					share = append(share, 100*a.ops/(a.ops+b.ops))
					goodput = append(goodput, 100*(a.ops+b.ops)/best)
					lat = append(lat, a.mean)
				}
				part, got := median(share), median(goodput)
				t.Logf("the first gets %.0f%% (%.0f to %.0f); goodput %.1f%%; mean %v", part, share[0], share[len(share)-1], got, median(lat))
				if got < 95 {
					t.Errorf("together they get %.1f%% of what one can", got)
				}
				if part < 35 || part > 65 {
					t.Errorf("the first gets %.0f%%", part)
				}
			})
		}
	}
}

// TestOpening: over a long way the limit doubles with each round trip, until calls wait
// for each other. A server that is near is searched as ever, and one with a queue is
// not flooded.
func TestOpening(t *testing.T) {
	const trip = 100 * ms
	for _, tc := range []struct {
		name        string
		service     service
		wire        time.Duration
		trips       int
		least, most int // of the limit then
	}{
		{"far", service{slots: 512, spent: about(ms, 0)}, trip, 4, 64, 128},
		{"far, three round trips", service{slots: 512, spent: about(ms, 0)}, trip, 3, 32, 64},
		{"a link that takes 33", service{slots: 1, spent: about(3*ms, 0)}, trip, 10, 34, 128},
		{"slots of 30 ms", service{slots: 4, spent: about(30*ms, 0)}, 0, 3, 8, 12},
		{"near", service{slots: 512, spent: about(10*ms, 0)}, 0, 3, 8, 8},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := &world{rnd: rand.New(rand.NewPCG(1, 1)), service: []service{tc.service}, wire: tc.wire}
			c := w.add(0, callers)
			w.run(time.Duration(tc.trips)*(tc.wire+tc.service.spent(w.rnd, 0)) + ms)
			if got := c.turns.limit; got < tc.least || got > tc.most {
				t.Errorf("after %d round trips the limit is %d, and not %d to %d", tc.trips, got, tc.least, tc.most)
			}
		})
	}
}

// TestOpeningFew: of callers who are fewer than the limit nothing is learnt.
func TestOpeningFew(t *testing.T) {
	w := &world{rnd: rand.New(rand.NewPCG(1, 1)), service: []service{{slots: 512, spent: about(ms, 0)}}, wire: 100 * ms}
	c := w.add(0, 4)
	w.run(10 * time.Second)
	if c.turns.limit != firstLimit || !c.turns.climb.opening {
		t.Errorf("with 4 callers the limit is %d, opening %v", c.turns.limit, c.turns.climb.opening)
	}
	if c.turns.smooth == 0 {
		t.Error("nobody knows what calls take")
	}
}

// TestOpeningFar: a class that has made no call begins as wide as pays over a long way,
// once calls of another class have shown that it is long, and no wider than ever if one
// of them was quick. It is made narrow again if its own calls queue.
func TestOpeningFar(t *testing.T) {
	const trip = 100 * ms
	for _, tc := range []struct {
		name     string
		took     []time.Duration // by calls for metadata
		outcome  Outcome
		writes   []time.Duration // before them
		replies  []time.Duration // to WRITEs after them
		max      int
		want     int
		admitted int // of many WRITEs that wait meanwhile
	}{
		{name: "far", took: []time.Duration{trip, trip, trip}, want: farLimit, admitted: farLimit},
		{name: "too few to tell", took: []time.Duration{trip, trip}, want: firstLimit, admitted: firstLimit},
		{name: "one was quick", took: []time.Duration{trip, ms, trip, trip}, want: firstLimit, admitted: firstLimit},
		{name: "refused", took: []time.Duration{trip, trip, trip}, outcome: Gone, want: firstLimit, admitted: firstLimit},
		{name: "begun before", took: []time.Duration{trip, trip, trip}, writes: []time.Duration{trip}, want: firstLimit, admitted: firstLimit},
		{name: "found near before", took: []time.Duration{trip, trip, trip}, writes: []time.Duration{ms}, want: firstLimit, admitted: firstLimit},
		{name: "fixed", took: []time.Duration{trip, trip, trip}, max: 2, want: 2, admitted: 2},
		{name: "a queue", took: []time.Duration{trip, trip, trip}, replies: []time.Duration{trip, 3 * trip}, want: farLimit / 2, admitted: farLimit},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := New(Options{Max: [Classes]int{Write: tc.max}})
				end := func(c Class, took time.Duration, o Outcome) {
					mustEnter(t, l, c)
					l.Leave(c, took, 0, o)
				}
				for _, took := range tc.writes {
					end(Write, took, OK)
				}
				for _, took := range tc.took {
					end(Metadata, took, tc.outcome)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				for range 2 * farLimit {
					go func() { _ = l.Enter(ctx, Write) }()
				}
				synctest.Wait()
				if s := l.Snapshot()[Write]; s.InFlight != tc.admitted {
					t.Errorf("%d in flight, want %d", s.InFlight, tc.admitted)
				}
				for _, took := range tc.replies {
					l.Leave(Write, took, 0, OK)
				}
				if s := l.Snapshot()[Write]; s.Limit != tc.want {
					t.Errorf("limit %d, want %d", s.Limit, tc.want)
				}
			})
		})
	}
}

// TestFewCallers: a limit that limits nobody does not grow, nor shrink, and is
// found as soon as it is needed.
func TestFewCallers(t *testing.T) {
	simulates(t)
	wide := []service{{slots: 128, spent: about(5*ms, 0.05)}}
	for seed := range seeds() {
		w := newWorld(seed, wide)
		c := w.add(0, 10)
		w.run(10 * time.Second)
		if c.turns.limit < 8 || c.turns.limit > 20 {
			t.Errorf("10 callers: limit %d", c.turns.limit)
		}

		w = newWorld(seed, wide)
		c = w.add(0, callers)
		w.run(4 * time.Second)
		before := c.turns.limit
		c.quit = callers - 5
		w.run(8 * time.Second)
		if c.turns.limit < before/2 || c.turns.limit > before*3/2 {
			t.Errorf("limit %d, and %d after four seconds with 5 callers", before, c.turns.limit)
		}
		for range callers - 5 {
			w.after(0, func() { w.enter(c) })
		}
		w.run(10 * time.Second)
		if r := c.between(9*time.Second, 10*time.Second); r.ops < 0.9*128/0.00535 {
			t.Errorf("%.0f/s with the callers back", r.ops)
		}
	}
}

// TestEnds: the limit stays within its bounds, and finds the way back from them.
func TestEnds(t *testing.T) {
	simulates(t)
	for seed := range seeds() {
		w := newWorld(seed, []service{
			{slots: 2000, spent: about(50*ms, 0.1)},
			{from: 6 * time.Second, slots: 2, spent: about(10*ms, 0.1)},
		})
		c := w.add(0, 2*callers)
		w.run(6 * time.Second)
		if c.turns.limit < MaxLimit*3/4 || c.turns.limit > MaxLimit {
			t.Errorf("a server without a knee: limit %d", c.turns.limit)
		}
		if s := c.turns.climb.state; s != hovering {
			t.Errorf("state %d at the ceiling", s)
		}
		w.run(30 * time.Second)
		if c.turns.limit < minLimit || c.turns.limit > 4*minLimit {
			t.Errorf("a server of two calls at once: limit %d", c.turns.limit)
		}
	}
}

// TestRefusals: a server that answers JUKEBOX above some calls at once is kept
// busy, and mostly below that.
func TestRefusals(t *testing.T) {
	simulates(t)
	const atOnce = 40
	most := atOnce / (21*ms/4 + ms/10).Seconds()
	var goodput, refused []float64
	for seed := range seeds() {
		w := newWorld(seed, []service{{slots: 64, spent: about(5*ms, 0.1)}})
		w.refuse = atOnce
		c := w.add(0, callers)
		w.run(10 * time.Second)
		r := c.between(2*time.Second, 10*time.Second)
		goodput = append(goodput, 100*r.ops/most)
		refused = append(refused, 100*float64(c.refused)/float64(len(c.done)))
	}
	got, no := median(goodput), median(refused)
	t.Logf("goodput %.1f%% (%.1f to %.1f), %.2f%% refused", got, goodput[0], goodput[len(goodput)-1], no)
	if got < 75 || no > 1 {
		t.Errorf("%.1f%% of what it takes at once, and %.2f%% refused", got, no)
	}
}

// TestMixedSizes: where large and small calls are mixed, bytes count.
func TestMixedSizes(t *testing.T) {
	simulates(t)
	s := []service{{slots: 16, spent: func(r *rand.Rand, bytes int) time.Duration {
		return ms/2 + time.Duration(bytes)*2*time.Nanosecond
	}}}
	run := func(seed uint64, limit int, long time.Duration) *simClient {
		w := newWorld(seed, s)
		c := w.add(limit, callers)
		c.size = func(r *rand.Rand) int { return 4096 << (4 * r.IntN(3)) }
		w.run(long)
		return c
	}
	best := 0.0
	for _, limit := range fixed {
		best = max(best, run(0, limit, 4*time.Second).between(time.Second, 4*time.Second).bytes)
	}
	var goodput []float64
	for seed := range seeds() {
		goodput = append(goodput, 100*run(seed, 0, 10*time.Second).between(2*time.Second, 10*time.Second).bytes/best)
	}
	got := median(goodput)
	t.Logf("goodput %.1f%% (%.1f to %.1f) of %.0f bytes/s", got, goodput[0], goodput[len(goodput)-1], best)
	if got < 93 {
		t.Errorf("goodput is %.1f%% of the best fixed limit's", got)
	}
}
