package view

import (
	"cmp"
	"container/heap"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Call is one call that a client has made, of those that were picked by [View.Share].
type Call struct {
	Client   string        // its address, or USER@ADDRESS
	User     string        // as whom it called; "": not known
	File     string        // what it was about, as Options.NameFile knows it; "": nothing
	Took     time.Duration // from its arrival to its answer
	BytesIn  uint64
	BytesOut uint64
}

// busy knows the busiest clients and files. It counts a sample of the calls, of which the
// share shrinks as there are more: all calls of a quiet server, and few of a busy one.
type busy struct {
	below atomic.Uint64 // see View.Share

	mu             sync.Mutex
	clients, files heavy
	picked         int     // guarded by mu; samples since the share was changed
	total          float64 // guarded by mu; calls in this interval, as the sample has it
}

func (b *busy) init() {
	b.below.Store(math.MaxUint64)
	b.clients.most, b.files.most = maxBusyClients, maxBusyFiles
}

// add counts a call that was wanted. It holds a lock for a look-up in two maps. If samples
// come faster than they should, the share is halved at once.
func (b *busy) add(c *Call) {
	share := float64(b.below.Load()) / math.MaxUint64
	weight := 1 / share
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total += weight
	if b.picked++; b.picked >= samples {
		b.picked = 0
		b.below.Store(max(b.below.Load()/2, leastShare))
	}
	client := b.clients.add(c.Client, weight, c)
	client.user = cmp.Or(short(c.User), client.user)
	if c.File == "" {
		return
	}
	client.other = c.File
	b.files.add(c.File, weight, c).other = c.Client
}

// turn ends an interval of so many seconds: it returns what was counted in it, and sets the
// share for the next one.
func (b *busy) turn(seconds float64) (clients, files []heavyRow) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clients, files = b.clients.turn(seconds), b.files.turn(seconds)
	b.picked = 0
	share := uint64(math.MaxUint64)
	if b.total > samples {
		share = uint64(math.MaxUint64 / b.total * samples)
	}
	b.below.Store(max(share, leastShare))
	b.total = 0
	return clients, files
}

// heavy is a summary of the names that are used most ("space-saving", Metwally and others,
// 2005). It has most entries. One more name takes the place of the one with the least weight,
// and inherits that, so that a new name has to prove itself only against the least. Weights
// halve in halfLife.
type heavy struct {
	most    int
	entries map[string]*entry
	order   byWeight
}

type entry struct {
	name    string
	at      int // in heavy.order
	weight  float64
	calls   float64 // in this interval, as all below
	in, out float64
	took    [tookBuckets]float32 // of late, by how long they took; it halves in tookHalf
	other   string               // of a client the last file, of a file the last client
	user    string               // of a client
}

// heavyRow is an entry at the end of an interval. Rates are a second.
type heavyRow struct {
	name, other, user string
	calls, in, out    float64
	p99               float64 // seconds
}

func (h *heavy) add(name string, weight float64, c *Call) *entry {
	e := h.entries[name]
	if e == nil {
		e = h.enter(name)
	}
	e.weight += weight
	heap.Fix(&h.order, e.at)
	e.calls += weight
	e.in += weight * float64(c.BytesIn)
	e.out += weight * float64(c.BytesOut)
	e.took[tookBucket(c.Took)] += float32(weight)
	return e
}

// enter makes an entry for a name that has none.
func (h *heavy) enter(name string) *entry {
	e := &entry{name: name}
	if h.entries == nil {
		h.entries = make(map[string]*entry)
	}
	h.entries[name] = e
	if len(h.order) < h.most {
		heap.Push(&h.order, e)
		return e
	}
	least := h.order[0]
	delete(h.entries, least.name)
	e.weight, h.order[0] = least.weight, e // and at is 0
	return e
}

// byWeight is a heap of entries, of which the first has the least weight.
type byWeight []*entry

func (o byWeight) Len() int           { return len(o) }
func (o byWeight) Less(i, j int) bool { return o[i].weight < o[j].weight }

func (o byWeight) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].at, o[j].at = i, j
}

// Push is for package heap, as Pop is.
func (o *byWeight) Push(x any) {
	e := x.(*entry)
	e.at = len(*o)
	*o = append(*o, e)
}

// Pop takes the last one.
func (o *byWeight) Pop() any {
	last := len(*o) - 1
	e := (*o)[last]
	(*o)[last] = nil
	*o = (*o)[:last]
	return e
}

// turn returns what was counted in an interval, and makes what is older count less.
func (h *heavy) turn(seconds float64) (rows []heavyRow) {
	fade, fadeTook := math.Exp2(-seconds/halfLife.Seconds()), float32(math.Exp2(-seconds/tookHalf.Seconds()))
	for name, e := range h.entries {
		if seconds > 0 {
			rows = append(rows, heavyRow{
				name: name, other: e.other, user: e.user, calls: e.calls / seconds, in: e.in / seconds, out: e.out / seconds, p99: e.p99(),
			})
			e.calls, e.in, e.out = 0, 0, 0
		}
		for i := range e.took {
			e.took[i] *= fadeTook
		}
		e.weight *= fade // as all do: the order stays
	}
	for len(h.order) > 0 && h.order[0].weight < forgotten {
		delete(h.entries, heap.Pop(&h.order).(*entry).name)
	}
	return rows
}

// The buckets of how long calls took: four for each doubling, from half a microsecond to
// eight seconds. What is beyond counts as the last.
const (
	tookBuckets = 4 * 24
	tookFirst   = 10 // bits of the first
)

func tookBucket(d time.Duration) int {
	v := uint64(max(d, 1<<(tookFirst-1)))
	n := bits.Len64(v)
	return min((n-tookFirst)*4+int(v>>(n-3)&3), tookBuckets-1)
}

// p99 is the time that one call in a hundred exceeds, in seconds, to within an eighth; 0
// without calls.
func (e *entry) p99() float64 {
	var sum float32
	for _, n := range e.took {
		sum += n
	}
	if sum < forgotten {
		return 0
	}
	left, i := sum/100, tookBuckets-1
	for ; i > 0 && left >= e.took[i]; i-- {
		left -= e.took[i]
	}
	from := math.Exp2(float64(i/4+tookFirst-1)) * (1 + float64(i%4)/4)
	to := math.Exp2(float64((i+1)/4+tookFirst-1)) * (1 + float64((i+1)%4)/4)
	return (from + to) / 2 / float64(time.Second)
}

// foremost is at most n of rows: by turns the first of each order, so that all who are first
// by any of them are there.
func foremost[R any](rows []R, n int, orders ...func(*R) float64) []R {
	if len(rows) <= n {
		return rows
	}
	ranks := make([][]int, len(orders))
	for i, by := range orders {
		for j := range rows {
			ranks[i] = append(ranks[i], j)
		}
		slices.SortStableFunc(ranks[i], func(a, b int) int { return cmp.Compare(by(&rows[b]), by(&rows[a])) })
	}
	chosen, out := make([]bool, len(rows)), make([]R, 0, n)
	for place := 0; place < len(rows); place++ {
		for _, rank := range ranks {
			if j := rank[place]; !chosen[j] && len(out) < n {
				chosen[j] = true
				out = append(out, rows[j])
			}
		}
	}
	return out
}
