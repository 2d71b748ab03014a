package nfsclient_test

import (
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

const (
	ms = time.Millisecond

	// offered is how many callers there are: more than any limit that is compared.
	offered = 300

	// followTime is how long the limit may take to follow a change. It takes about
	// three seconds.
	followTime = 10 * time.Second
)

// soak says whether the long comparison runs, which takes a quarter of an hour
// and a machine that does nothing else.
func soak() bool { return os.Getenv("NFSBOX_SOAK") != "" }

// TestPaceShort: the limiter keeps a slow server busy and does not flood it.
func TestPaceShort(t *testing.T) { synctest.Test(t, testPaceShort) }

func testPaceShort(t *testing.T) {
	f := newFarFiler(t, disks(16, 5*ms))
	fixed := f.run(t, 64, 200*ms, 800*ms)
	auto := f.run(t, 0, 1200*ms, 800*ms)
	t.Logf("16 slots of 5 ms: 64 at once %v; adaptive %v", fixed, auto)
	if auto.rate < 0.95*fixed.rate {
		t.Errorf("%.0f calls a second, and 64 at once make %.0f", auto.rate, fixed.rate)
	}
	if auto.limit > 64 {
		t.Errorf("16 slots are asked for %d calls at once", auto.limit)
	}
}

// TestPaceFollows: the limit follows a server that becomes much slower, and back.
func TestPaceFollows(t *testing.T) { synctest.Test(t, testPaceFollows) }

func testPaceFollows(t *testing.T) {
	fast, slow := disks(64, 5*ms), disks(2, 10*ms)
	f := newFarFiler(t, fast)
	l := newLoad(t, f, 0, offered)
	defer l.stop()
	for _, step := range []struct {
		storage *storage
		reached func(limit int) bool
	}{
		{fast, func(limit int) bool { return limit > 40 }},
		{slow, func(limit int) bool { return limit < 20 }},
		{fast, func(limit int) bool { return limit > 40 }},
	} {
		f.storage.Store(step.storage)
		began := time.Now()
		limit := l.limit()
		for !step.reached(limit) && time.Since(began) < followTime {
			time.Sleep(5 * ms)
			limit = l.limit()
		}
		t.Logf("%d slots: limit %d after %v", cap(step.storage.slots), limit, time.Since(began).Round(ms))
		if !step.reached(limit) {
			t.Errorf("%d slots: limit %d after %v", cap(step.storage.slots), limit, followTime)
		}
	}
}

// TestPaceSoak holds the adaptive limit against fixed ones on every kind of
// server, five times in turn. Median of five, from the third second on, it must
// give 95% of the best fixed limit's goodput, and on slow servers at most half of
// the p99 that 256 calls at once suffer.
func TestPaceSoak(t *testing.T) {
	if !soak() {
		t.Skip("NFSBOX_SOAK is not set")
	}
	for _, tc := range []struct {
		name    string
		storage *storage
		limits  []int // around the best
		slow    bool
	}{
		{"memory", nil, []int{16, 32, 64, 128, 256}, false},
		{"16 slots of 1 ms", disks(16, ms), []int{8, 16, 32, 64, 256}, true},
		{"4 slots of 10 ms", disks(4, 10*ms), []int{2, 4, 8, 16, 256}, true},
		{"128 slots of 5 ms", disks(128, 5*ms), []int{64, 128, 256}, false},
		{"16 slots of 0.2 or 8 ms", bimodal(16, ms/5, 8*ms), []int{8, 16, 32, 64, 256}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFiler(t, tc.storage)
			fixed := make(map[int][]figures)
			var auto []figures
			for range 5 {
				for _, limit := range tc.limits {
					fixed[limit] = append(fixed[limit], f.run(t, limit, 500*ms, 2*time.Second))
				}
				auto = append(auto, f.run(t, 0, 2*time.Second, 8*time.Second))
			}
			var best figures
			for _, limit := range tc.limits {
				m := medians(fixed[limit])
				t.Logf("%3d at once: %v", limit, m)
				if m.rate > best.rate {
					best = m
				}
			}
			got, deep := medians(auto), medians(fixed[256])
			share := 100 * got.rate / best.rate
			t.Logf("adaptive:    %v: %.1f%% of the best", got, share)
			if share < 95 {
				t.Errorf("goodput is %.1f%% of the best fixed limit's", share)
			}
			if tc.slow && 2*got.p99 > deep.p99 {
				t.Errorf("p99 is %v, and of 256 at once %v", got.p99, deep.p99)
			}
		})
	}
}

// TestPaceSoakSteps: 64 slots of 1 ms become 8 of 5 ms for three seconds. From one
// second after on a call takes at most half as long again as at the best limit.
func TestPaceSoakSteps(t *testing.T) {
	if !soak() {
		t.Skip("NFSBOX_SOAK is not set")
	}
	f := newFiler(t, disks(64, ms))
	limits := []int{64, 128}
	fixed := make(map[int][]figures)
	var auto, best, late []figures
	steps := func(limit int) (all, slow figures) {
		f.storage.Store(disks(64, ms))
		l := newLoad(t, f, limit, offered)
		defer l.stop()
		time.Sleep(2 * time.Second)
		whole := f.begin(l)
		time.Sleep(2 * time.Second)
		f.storage.Store(disks(8, 5*ms))
		time.Sleep(time.Second)
		part := f.begin(l)
		time.Sleep(2 * time.Second)
		slow = f.end(l, part)
		f.storage.Store(disks(64, ms))
		time.Sleep(3 * time.Second)
		return f.end(l, whole), slow
	}
	for range 5 {
		for _, limit := range limits {
			all, _ := steps(limit)
			fixed[limit] = append(fixed[limit], all)
		}
		all, slow := steps(0)
		auto, late = append(auto, all), append(late, slow)
		f.storage.Store(disks(8, 5*ms))
		best = append(best, f.run(t, 8, 300*ms, time.Second))
	}
	var most figures
	for _, limit := range limits {
		if m := medians(fixed[limit]); m.rate > most.rate {
			most = m
		}
	}
	got, lat, want := medians(auto), medians(late), medians(best)
	share := 100 * got.rate / most.rate
	t.Logf("fixed %v; adaptive %v: %.1f%%; while slow %v, where 8 at once give %v", most, got, share, lat, want)
	if share < 95 {
		t.Errorf("goodput is %.1f%% of the best fixed limit's", share)
	}
	if 2*lat.mean > 3*want.mean {
		t.Errorf("while the server is slow a call takes %v, at the best limit %v", lat.mean, want.mean)
	}
}

// TestPaceSoakSharing: two clients of one server get about the same, and together
// all that there is.
func TestPaceSoakSharing(t *testing.T) {
	if !soak() {
		t.Skip("NFSBOX_SOAK is not set")
	}
	f := newFiler(t, disks(16, 2*ms))
	var fixed, both []figures
	var part []float64
	for range 5 {
		fixed = append(fixed, f.run(t, 32, 300*ms, 2*time.Second))
		a, b := newLoad(t, f, 0, offered), newLoad(t, f, 0, offered)
		time.Sleep(2 * time.Second)
		begunA, begunB := f.begin(a), f.begin(b)
		time.Sleep(8 * time.Second)
		endA, endB := f.end(a, begunA), f.end(b, begunB)
		a.stop()
		b.stop()
		part = append(part, 100*endA.rate/(endA.rate+endB.rate))
		endA.rate += endB.rate
		both = append(both, endA)
	}
	slices.Sort(part)
	best, got := medians(fixed), medians(both)
	share := 100 * got.rate / best.rate
	t.Logf("fixed %v; both %v: %.1f%%; the first gets %.0f%%", best, got, share, part)
	if share < 95 {
		t.Errorf("together they get %.1f%% of what one can", share)
	}
	if p := part[len(part)/2]; p < 35 || p > 65 {
		t.Errorf("the first gets %.0f%%", p)
	}
}
