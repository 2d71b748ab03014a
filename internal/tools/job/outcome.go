package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// maxSilent is how many items in a row may fail for want of an answer before the job
	// ends. If fewer are in flight, all of those are enough. Each has waited for the
	// client's whole patience.
	maxSilent = 3
	// maxFull is how many items in a row may fail for want of space in the destination
	// before the job ends. A file with contents that is copied ends the row. If everything
	// else is done and the last failures were these, minFull of them are enough.
	maxFull = 16
	minFull = 2
	// maxTight is how many failures for want of space are held back after a later file
	// found room, about 300 bytes each: the job may yet end because of them. At the bound
	// they are reported.
	maxTight = 4096
	// maxUnsure is how many items may vanish before the source is asked again whether it
	// is still there.
	maxUnsure = 64
	// maxUnsureHeld is how many vanished items are held back, about 500 bytes each, to be
	// looked up once more at the end. At the bound they are looked up at once.
	maxUnsureHeld = 4096
)

var (
	// ErrSilent says that the job has ended because a server has stopped answering.
	ErrSilent = errors.New("a server has stopped answering")
	// ErrFull says that the job has ended because the destination is full.
	ErrFull = errors.New("the destination is full")
	// ErrGone says that the job has ended because the source as a whole is gone or
	// replaced.
	ErrGone = errors.New("the source is gone")
	// ErrMoved says that the copy is done and not where it should be: somebody has moved or
	// removed it, or a directory above it.
	ErrMoved = errors.New("it was moved or removed during the copy")
)

// FullError is the error of a job that has ended because the destination is full. It Is ErrFull.
type FullError struct {
	Path string // of the first item that found no room, in the source; a peer may have chosen the name
	Why  error
}

// Error implements error.
func (e *FullError) Error() string { return fmt.Sprintf("%v: %s: %v", ErrFull, e.Path, e.Why) }

// Unwrap returns ErrFull and the item's error.
func (e *FullError) Unwrap() []error { return []error{ErrFull, e.Why} }

// noRoom is the error of a file of size bytes that was not copied. For want of space it says how large the
// file is, and not at which offset the space ended: blocks are written in no order, and the part is removed.
func noRoom(err error, size uint64) error {
	status, ok := vfs.StatusOf(err)
	if !ok || status != vfs.ErrNoSpace && status != vfs.ErrQuota || size == 0 {
		return err
	}
	return fmt.Errorf("no room for its %s: %w", progress.Size(size), status)
}

// Kinds of events: items that were not copied, or not as they stood.
const (
	KindVanished = "vanished" // a note: the name was gone when its turn came
	KindChanged  = "changed"  // an error: the file changed each time it was copied
	KindGrew     = "grew"     // a note: appended to meanwhile, and kept as it was at first

	// KindDirChanged: a directory changed meanwhile, and what came into it may not have been met.
	// Copy lists such directories again. It is a note if they change on, and an error if what is
	// older than their last listing came into them; of Verify a note if something in it has
	// vanished, else an error.
	KindDirChanged = "dir_changed"
)

// outcomes counts and reports what became of items. Its methods may be called
// concurrently.
type outcomes struct {
	progress      *progress.Tracker
	changed, grew atomic.Uint64
	noSpace       atomic.Uint64 // items that failed for want of space, reported or not
	begun         atomic.Uint64 // items that have begun
	left          leftovers
	dirs          goneDirs
	source        source

	failed failedPaths

	mu           sync.Mutex
	silent, full streak
	tight        []progress.Event // failures of want-of-space streaks that a small file ended
	unsure       []unsure         // items that may be gone because the source is, or was
	doubt        bool             // the source has to be asked at the end
	breakOff     context.CancelCauseFunc
	busy         func() int // items in flight
}

// streak is a run of failures of one kind without a success in between. They are held back:
// if they end the job, its error reports them as one.
type streak struct {
	held  []progress.Event
	since uint64 // how many items had begun at the first failure
	why   error  // the job's error, if the streak ends it
}

// watch returns the context of a job that a streak can cancel. The caller calls end with the
// walk's error when all work has ended; end returns the job's error.
func (c *outcomes) watch(ctx context.Context, busy func() int) (watched context.Context, end func(error) error) {
	watched, breakOff := context.WithCancelCause(ctx)
	c.mu.Lock()
	c.breakOff, c.busy = breakOff, busy
	c.mu.Unlock()
	return watched, func(err error) error {
		defer breakOff(nil)
		if err == nil {
			err = c.makeSure(watched)
		}
		cause := context.Cause(watched)
		if errors.Is(cause, ErrSilent) || errors.Is(cause, ErrFull) || errors.Is(cause, ErrGone) {
			return cause
		}
		c.tellAll(take(c, &c.unsure))
		c.tell(&c.silent)
		if full := c.fullInTheEnd(); full != nil && err == nil {
			return full
		}
		c.reportAll(take(c, &c.tight))
		c.tell(&c.full)
		return err
	}
}

// start counts an item that is begun.
func (c *outcomes) start() { c.begun.Add(1) }

// done notes a success, which ends the streak of missing answers.
func (c *outcomes) done() { c.tell(&c.silent) }

// foundRoom notes that a file with contents was copied. This ends the want-of-space streak,
// unless the file had begun before the streak did: it may have got its space before.
func (c *outcomes) foundRoom(begun uint64) {
	c.mu.Lock()
	room := begun > c.full.since
	c.mu.Unlock()
	if room {
		c.setAside()
	}
}

// setAside ends a streak for want of space. A disk that is nearly full has room for small
// files only. So the failures stay held back until the job is known not to end by them.
func (c *outcomes) setAside() {
	c.mu.Lock()
	c.tight = append(c.tight, c.full.held...)
	c.full.held = nil
	over := len(c.tight) >= maxTight
	c.mu.Unlock()
	if over {
		c.reportAll(take(c, &c.tight))
	}
}

// fullInTheEnd is the job's error if its last files found no room; otherwise nil.
func (c *outcomes) fullInTheEnd() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.full.held) < minFull {
		return nil
	}
	return c.full.why
}

// tell ends a streak: its failures are reported one by one.
func (c *outcomes) tell(s *streak) { c.reportAll(take(c, &s.held)) }

// take empties held and returns what it had.
func take[T any](c *outcomes, held *[]T) []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := *held
	*held = nil
	return taken
}

func (c *outcomes) reportAll(events []progress.Event) {
	for _, e := range events {
		c.report(e)
	}
}

// report counts and reports the outcome of an item. One that a later look at the source has found again,
// and that fails again, is counted and reported once.
func (c *outcomes) report(e progress.Event) {
	switch {
	case e.Kind == KindVanished:
		c.progress.Add(progress.Vanished, 1)
	case !c.failed.first(e.Path, e.Message):
		c.progress.Add(progress.FoundItems, ^uint64(0))
		return
	default:
		c.progress.Add(progress.Errors, 1)
	}
	c.progress.Report(e)
}

// fail reports an item that failed; a nil err is none. A failure after the job was cancelled
// is not reported.
func (c *outcomes) fail(ctx context.Context, path string, err error) {
	c.failAt(ctx, path, err, listed{})
}

// failMore reports a failure of an item that is counted as well.
func (c *outcomes) failMore(ctx context.Context, path string, err error) {
	if err != nil && ctx.Err() == nil {
		c.progress.Add(progress.MoreErrors, 1)
	}
	c.fail(ctx, path, err)
}

// failAt is fail for an object of the source, with the place where it was listed.
func (c *outcomes) failAt(ctx context.Context, path string, err error, at listed) {
	if err == nil {
		return
	}
	if ctx.Err() != nil || errors.Is(err, vfs.ErrNoAnswer) {
		c.left.note(path, err)
	}
	if ctx.Err() != nil {
		return
	}
	e := progress.Event{Type: "error", Path: path, Message: fault.Text(err), Err: err}
	switch {
	case errors.Is(err, transfer.ErrVanished), errors.Is(err, walk.ErrVanished):
		e.Type, e.Kind = "note", KindVanished
		c.doubtful(ctx, unsure{e, at})
	case errors.Is(err, vfs.ErrNoAnswer):
		c.hold(&c.silent, e, min(maxSilent, max(c.inFlight(), 1)), fmt.Errorf("%w: %w", ErrSilent, err))
	case errors.Is(err, vfs.ErrNoSpace), errors.Is(err, vfs.ErrQuota):
		c.noSpace.Add(1)
		c.hold(&c.full, e, maxFull, &FullError{path, err})
	case errors.Is(err, transfer.ErrChanged):
		c.changed.Add(1)
		e.Kind = KindChanged
		c.report(e)
	case errors.Is(err, errDirChanged), errors.Is(err, errLate):
		e.Kind = KindDirChanged
		c.report(e)
	case errors.Is(err, vfs.ErrStale):
		c.doubtful(ctx, unsure{event: e})
	default:
		c.report(e)
	}
}

// hold adds a failure to a streak. At limit failures it ends the job with why.
func (c *outcomes) hold(s *streak, e progress.Event, limit int, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(s.held) == 0 {
		s.since, s.why = c.begun.Load(), why
	}
	if s.held = append(s.held, e); len(s.held) >= limit && c.breakOff != nil {
		c.breakOff(why)
	}
}

func (c *outcomes) inFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy == nil {
		return 0
	}
	return c.busy()
}

// grewMeanwhile notes a file that was appended to while it was copied.
func (c *outcomes) grewMeanwhile(path string, size uint64) {
	c.grew.Add(1)
	c.progress.Report(progress.Event{
		Type: "note", Kind: KindGrew, Path: path, Message: fmt.Sprintf("it grew while it was copied; the copy has its first %d bytes", size),
	})
}
