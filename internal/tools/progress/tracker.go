package progress

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Counter is one of the things that are counted.
type Counter uint8

// The counters.
const (
	Files        Counter = iota // regular files that are done
	Dirs                        // directories
	Symlinks                    // symbolic links
	Hardlinks                   // further names of files that are done
	Nodes                       // devices, pipes, sockets
	Bytes                       // bytes of the files' contents
	Skipped                     // items that needed nothing
	SkippedBytes                // the sizes of files among them, which FoundBytes leaves out
	Verified                    // files that were read back and compared
	Differences                 // found by a verification
	Errors                      // items that failed
	Vanished                    // items that were gone when their turn came
	FoundItems                  // items of any kind that the walk has met
	FoundBytes                  // the sizes of files among them
	MoreErrors                  // of Errors, those of items that are counted by another counter, too
	numCounters
)

var counterNames = [numCounters]string{
	"files", "dirs", "symlinks", "hardlinks", "nodes", "bytes", "skipped", "skipped_bytes", "verified", "differences", "errors",
	"vanished",
	"found_items", "found_bytes", "errors of items that are counted already",
}

// String implements fmt.Stringer.
func (c Counter) String() string { return counterNames[c] }

// Snapshot has the values of the counters at one time.
type Snapshot struct {
	Time    time.Time
	Elapsed time.Duration
	Closed  bool // the totals, FoundItems and FoundBytes, will not grow any more
	Counts  [numCounters]uint64
	Name    string // of an item that is worked at, as the peer sent it; may be empty
	Loads   []Load // of servers, if the renderer shows them
	Team    *Team  // nil: the task has none
}

// Load is how many calls of a class a server has.
type Load struct {
	Server   string `json:"server"`    // as the user named it
	Class    string `json:"class"`     // "metadata", "read" or "write"
	InFlight int    `json:"in_flight"` // calls that are not answered yet
	Limit    int    `json:"limit"`     // how many there may be
	Waiting  int    `json:"waiting"`   // calls that wait for their turn
	BackOffs uint64 `json:"back_offs"` // times that the limit fell, as the server was busy or silent
}

// Team are workers on other machines that a task has its work done by.
type Team struct {
	Workers int    `json:"workers"`    // that take part
	Batches int    `json:"batches"`    // of files that they have, or wait for them
	Here    uint64 `json:"files_here"` // files that no worker could work at, and that were worked at here
}

// Map has the counters by their names, as JSON has them, and totals_final, which is 1 if the totals
// will not grow any more.
func (s *Snapshot) Map() map[string]uint64 {
	m := make(map[string]uint64, MoreErrors+1)
	for i, n := range s.Counts[:MoreErrors] { // which is for Items alone
		m[counterNames[i]] = n
	}
	m["totals_final"] = 0
	if s.Closed {
		m["totals_final"] = 1
	}
	return m
}

// Items is the number of items that are done or failed.
func (s *Snapshot) Items() uint64 {
	var n uint64
	for _, c := range [...]Counter{Files, Dirs, Symlinks, Hardlinks, Nodes, Skipped, Errors, Vanished} {
		n += s.Counts[c]
	}
	return n - min(n, s.Counts[MoreErrors])
}

// bytes are those of files that are done, the skipped ones too, and of all that were found. So they
// say the same as Items.
func (s *Snapshot) bytes() (done, found uint64) {
	skipped := s.Counts[SkippedBytes]
	return s.Counts[Bytes] + skipped, s.Counts[FoundBytes] + skipped
}

// Event is something that the user must learn.
type Event struct {
	Type    string // "error", "difference", "note", "done"; about a server "silent", "answers"
	Kind    string // of a difference: what differs; of an error: what failed; may be empty
	Path    string // as the peer sent it: renderers clean it
	Message string // may quote names too
	Err     error  // of an error: for its code; may be nil
	Advice  string // of an error: what to do; may be empty
	Whole   bool   // of an error: it has ended the task, or a part that was named; people are told by the caller

	Server string    // one that has stopped answering, or answers again
	Since  time.Time // when it was last heard of
	Until  time.Time // when the wait for it ends; zero: when it answers
}

// Renderer shows a Tracker. Its methods are called one at a time.
type Renderer interface {
	// Interval is the time from one Progress to the next.
	Interval() time.Duration
	Progress(s *Snapshot) error
	Event(now time.Time, e *Event) error
	// Summary is the last call, made once. v is the task's summary.
	Summary(s *Snapshot, v any) error
}

// Tracker counts. Its methods may be called concurrently, also on a nil
// *Tracker, which does nothing.
type Tracker struct {
	counts [numCounters]atomic.Uint64
	closed atomic.Bool
	now    func() time.Time
	start  time.Time
	names  bool // the renderer shows names
	name   atomic.Pointer[func() string]
	loads  atomic.Pointer[func() []Load]
	team   atomic.Pointer[func() Team]
	stop   chan struct{}
	ticks  sync.WaitGroup

	mu   sync.Mutex
	show Renderer
	err  error // the first error of show
	over bool
}

// New makes a Tracker that calls show, which may be nil, until Finish. now is its clock.
func New(show Renderer, now func() time.Time) *Tracker {
	t := &Tracker{now: now, start: now(), show: show, names: showsNames(show), stop: make(chan struct{})}
	if show != nil {
		t.ticks.Go(t.run)
	}
	return t
}

// showsNames reports whether r shows the names of what is worked at.
func showsNames(r Renderer) bool {
	n, ok := r.(interface{ names() bool })
	return ok && n.names()
}

// showsLoads reports whether r shows the loads of servers.
func showsLoads(r Renderer) bool {
	l, ok := r.(interface{ loads() bool })
	return ok && l.loads()
}

func (t *Tracker) run() {
	tick := time.NewTicker(t.show.Interval())
	defer tick.Stop()
	for {
		select {
		case <-t.stop:
			return
		case <-tick.C:
			s := t.Snapshot()
			if f := t.loads.Load(); f != nil && showsLoads(t.show) {
				s.Loads = (*f)()
			}
			t.render(func() error { return t.show.Progress(&s) })
		}
	}
}

// render runs f, unless the summary was shown or showing has failed: a lost terminal does not
// stop the task.
func (t *Tracker) render(f func() error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.show == nil || t.over || t.err != nil {
		return
	}
	t.err = f()
}

// Add adds n to c.
func (t *Tracker) Add(c Counter, n uint64) {
	if t != nil {
		t.counts[c].Add(n)
	}
}

// Working notes what is worked at. name is called when the name is shown, by another goroutine,
// and perhaps long after.
func (t *Tracker) Working(name func() string) {
	if t != nil && t.names {
		t.name.Store(&name)
	}
}

// SetLoads has the loads of servers shown, by renderers that do. f is called by another goroutine, until
// Finish.
func (t *Tracker) SetLoads(f func() []Load) {
	if t != nil {
		t.loads.Store(&f)
	}
}

// SetTeam has a team shown. f is called by another goroutine, until Finish.
func (t *Tracker) SetTeam(f func() Team) {
	if t != nil {
		t.team.Store(&f)
	}
}

// Get is the value of c.
func (t *Tracker) Get(c Counter) uint64 {
	if t == nil {
		return 0
	}
	return t.counts[c].Load()
}

// CloseTotals notes that everything there is to do has been found.
func (t *Tracker) CloseTotals() {
	if t != nil {
		t.closed.Store(true)
	}
}

// Snapshot reads the counters.
func (t *Tracker) Snapshot() Snapshot {
	if t == nil {
		return Snapshot{}
	}
	now := t.now()
	s := Snapshot{Time: now, Elapsed: now.Sub(t.start), Closed: t.closed.Load()}
	for i := range s.Counts {
		s.Counts[i] = t.counts[i].Load()
	}
	if team := t.team.Load(); team != nil {
		now := (*team)()
		s.Team = &now
	}
	if name := t.name.Load(); name != nil {
		s.Name = (*name)()
	}
	return s
}

// Report shows e. It waits for the output, which slows a task down that fails everywhere. It
// does not count.
func (t *Tracker) Report(e Event) {
	if t != nil {
		t.render(func() error { return t.show.Event(t.now(), &e) })
	}
}

// ErrFinished is returned by a second Finish.
var ErrFinished = errors.New("progress has been finished")

// Finish shows the summary v and ends the rendering. It returns the first error of the output.
// v is marshalled as JSON; it must hold no names of a peer.
func (t *Tracker) Finish(v any) error {
	if t == nil {
		return nil
	}
	s := t.Snapshot()
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return ErrFinished
	}
	t.over = true
	if t.show != nil && t.err == nil {
		t.err = t.show.Summary(&s, v)
	}
	err := t.err
	t.mu.Unlock()
	close(t.stop)
	t.ticks.Wait()
	return err
}
