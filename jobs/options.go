package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/base/filter"
	"github.com/nfsbox/nfsbox/internal/base/throttle"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// Errors of jobs. They are found with errors.Is.
var (
	// ErrIncomplete says that items have failed, or, of Verify, are different. All others were done.
	ErrIncomplete = errors.New("not all is done")
	// ErrDifferent says that Verify has compared everything, and found differences. It Is ErrIncomplete,
	// too.
	ErrDifferent = errors.New("the two are different")
	// ErrPlace says that an argument is no place, or none that the job can be done with, or that options are wrong.
	ErrPlace = place.ErrUsage
	// ErrUnreachable says that a place cannot be reached: its server, or what that exports. Nothing was
	// done.
	ErrUnreachable = errors.New("cannot be reached")
	// ErrSilent says that a server has stopped answering.
	ErrSilent = job.ErrSilent
	// ErrFull says that the destination is full.
	ErrFull = job.ErrFull
	// ErrGone says that the source as a whole is not there any more.
	ErrGone = job.ErrGone
	// ErrMoved says that the copy is not where it was made any more.
	ErrMoved = job.ErrMoved
	// ErrIntoItself says that the destination is the source, or lies within it. Nothing was made.
	ErrIntoItself = job.ErrIntoItself
	// ErrRecord says that the record cannot be used: it is damaged, another job's, or in use.
	ErrRecord = job.ErrRecord
)

// Options are those of all jobs. The zero Options will do.
type Options struct {
	// Dial are options for the clients of servers. They stand above what URLs say.
	Dial []nfsbox.Option
	// Parallel is how many files are worked on at once, up to 1024; 0 takes what suits most places.
	Parallel int
	// OneFileSystem takes directories that are on another file system than the source, or that something of this
	// host is mounted on, for empty ones.
	OneFileSystem bool
	// Rules choose what is worked at in a tree: each is + or -, a blank and a pattern of rsync(1), which takes or
	// leaves out what it matches. The first rule that matches decides, and what none matches is taken.
	Rules []string
	// Snapshots takes directories called .snapshot, ~snapshot, .zfs or .ckpt as well, in which servers show
	// snapshots. Without it they are left out, and counted.
	Snapshots bool
	// Rate bounds the bytes a second; nil: nothing does. A byte that is read and written, or read on both
	// sides, counts once; one that is read back counts again.
	Rate *Rate
	// Events, if not nil, gets what happens, and is closed by the end of the job. See Event.
	Events chan<- Event
}

// Rate bounds how many bytes a second jobs move. Several may share it. Its methods may be called concurrently.
type Rate struct{ t *throttle.Throttle }

// NewRate makes a bound of so many bytes a second, 1024 at least; 0 is none. Over ten seconds it holds within
// five percent.
func NewRate(bytes uint64) *Rate { return &Rate{throttle.New(bytes)} }

// Set changes the bound, at once also for what waits for it.
func (r *Rate) Set(bytes uint64) { r.t.Set(bytes) }

func (r *Rate) throttle() *throttle.Throttle {
	if r == nil {
		return nil
	}
	return r.t
}

// The types of events. Types may be added.
const (
	Progress   = "progress"   // the counters, some times a second
	Would      = "would"      // of a CopyOptions.DryRun: something would be done; Kind is "copy" or "set"
	Failed     = "error"      // an item has failed
	Difference = "difference" // of Verify: something is not the same
	Note       = "note"       // something that is no failure, such as what has vanished
)

// Event is something that happens in a job. Those of type Progress are left out when the channel is full. All
// others wait until they are received, or the job's context has ended.
type Event struct {
	Type string
	// Path is the item, below the source. It is as the server or the disk has it: it may hold what
	// steers a terminal.
	Path string
	// Kind is of a Difference "missing", "extra", "type", "size", "content", "target", "device", "mode", "mtime",
	// "owner", "links", "acl" or "xattr"; of others it may be empty. Types, kinds and counters may be added.
	Kind    string
	Message string // for people; it may quote names
	Err     error  // of a failed item

	Counters Counters // of Progress
}

// Counters are how far a job is.
type Counters struct {
	Elapsed                                                 time.Duration
	Files, Dirs, Symlinks, Hardlinks, Nodes                 uint64 // done
	Bytes, Skipped, Verified, Differences, Errors, Vanished uint64
	FoundItems, FoundBytes                                  uint64 // that were found by now, done or not
	Final                                                   bool   // FoundItems and FoundBytes are all there is
}

// filter is what Rules and Snapshots choose.
func (o *Options) filter() (*filter.Filter, error) {
	for _, rule := range o.Rules {
		if strings.ContainsAny(rule, "\r\n") {
			return nil, fmt.Errorf("%w: the rule %q has a line feed", ErrPlace, rule)
		}
	}
	rules, err := filter.ParseRules("Rules", strings.NewReader(strings.Join(o.Rules, "\n")))
	var f *filter.Filter
	if err == nil {
		f, err = filter.New(filter.Options{Rules: rules, Snapshots: o.Snapshots})
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlace, err)
	}
	return f, nil
}

// eventsEvery is the time between two events of type Progress.
const eventsEvery = 200 * time.Millisecond

// events renders a tracker as Events.
type events struct {
	ctx context.Context
	to  chan<- Event
}

// tracker starts to tell of a job; done ends that.
func (o *Options) tracker(ctx context.Context) (t *progress.Tracker, done func()) {
	if o.Events == nil {
		return progress.New(nil, time.Now), func() {}
	}
	t = progress.New(events{ctx, o.Events}, time.Now)
	return t, func() {
		_ = t.Finish(nil) // an Event has no error
		close(o.Events)
	}
}

// Interval implements progress.Renderer.
func (events) Interval() time.Duration { return eventsEvery }

// Progress implements progress.Renderer.
func (e events) Progress(s *progress.Snapshot) error {
	select {
	case e.to <- Event{Type: Progress, Counters: counters(s)}:
	default:
	}
	return nil
}

// Event implements progress.Renderer.
func (e events) Event(_ time.Time, x *progress.Event) error {
	select {
	case e.to <- Event{Type: x.Type, Path: x.Path, Kind: x.Kind, Message: x.Message, Err: x.Err}:
	case <-e.ctx.Done():
	}
	return nil
}

// Summary implements progress.Renderer: what Copy returns says it.
func (e events) Summary(s *progress.Snapshot, _ any) error { return e.Progress(s) }

func counters(s *progress.Snapshot) Counters {
	n := func(c progress.Counter) uint64 { return s.Counts[c] }
	return Counters{
		Elapsed: s.Elapsed, Files: n(progress.Files), Dirs: n(progress.Dirs), Symlinks: n(progress.Symlinks),
		Hardlinks: n(progress.Hardlinks), Nodes: n(progress.Nodes), Bytes: n(progress.Bytes), Skipped: n(progress.Skipped),
		Verified: n(progress.Verified), Differences: n(progress.Differences), Errors: n(progress.Errors), Vanished: n(progress.Vanished),
		FoundItems: n(progress.FoundItems), FoundBytes: n(progress.FoundBytes), Final: s.Closed,
	}
}
