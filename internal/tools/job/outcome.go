package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// maxSilent is how many items in a row may fail because a server has not answered
	// for its whole patience, while nothing else gets done. Then the job ends. If fewer
	// are being worked at, all of them are enough.
	maxSilent = 3
	// maxFull is how many items in a row may fail for want of space in the destination,
	// while no file gets done that has contents. Then the job ends. If all is done, and the
	// last ones that had contents failed so, minFull of them are enough.
	maxFull = 16
	minFull = 2
	// maxTight is how many failures for want of space are held back although something found
	// room after them: perhaps the job ends because of them. Each takes about 300 bytes. At
	// the bound they are told.
	maxTight = 4096
	// maxUnsure is how many more items may have vanished before the source is asked again
	// whether it is still there.
	maxUnsure = 64
	// maxUnsureHeld is how many of them are held back, about 500 bytes each, to be looked for
	// once more when all is done. At the bound that is done at once.
	maxUnsureHeld = 4096
)

var (
	// ErrSilent says that the job has ended because a server gave no answer any more.
	ErrSilent = errors.New("a server has stopped answering")
	// ErrFull says that the job has ended because the destination is full.
	ErrFull = errors.New("the destination is full")
	// ErrGone says that the job has ended because what it was to copy or compare is not
	// there any more, as a whole.
	ErrGone = errors.New("the source is gone")
)

// The kinds of events of items that were not copied as they stood, or not at all.
const (
	KindVanished = "vanished" // a note: the name was gone when its turn came
	KindChanged  = "changed"  // an error: the file changed each time it was copied
	KindGrew     = "grew"     // a note: appended to meanwhile, and kept as it was at first
)

// outcomes counts and reports what became of items. Its methods may be called
// concurrently.
type outcomes struct {
	progress      *progress.Tracker
	changed, grew atomic.Uint64
	noSpace       atomic.Uint64 // items that have failed for want of it, told or not
	begun         atomic.Uint64 // items that have begun
	left          leftovers
	source        source

	mu           sync.Mutex
	silent, full streak
	tight        []progress.Event // of streaks for want of space that a small file ended
	unsure       []unsure         // what may be gone because the source is, or was
	doubt        bool             // the source has to be asked in the end
	breakOff     context.CancelCauseFunc
	busy         func() int // items that are being worked at
}

// streak are failures of one kind, without a success between them. They are held back:
// if they end the job, it says so once.
type streak struct {
	held  []progress.Event
	since uint64 // how many items had begun at the first
	why   error  // of the job, if it ends it
}

// watch is the context of a job that a streak can break off. end is called when all
// work has ended, with its error, and returns the job's.
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

// start counts an item that begins.
func (c *outcomes) start() { c.begun.Add(1) }

// done takes note of an item that was dealt with.
func (c *outcomes) done() { c.tell(&c.silent) }

// foundRoom takes note of a file with contents that was copied. It shows that the disk is not
// full, unless so many items had begun before that it had its space before the disk was.
func (c *outcomes) foundRoom(begun uint64) {
	c.mu.Lock()
	room := begun > c.full.since
	c.mu.Unlock()
	if room {
		c.setAside()
	}
}

// setAside ends a streak for want of space. At the edge small files find room beside those
// that do not. So what has failed is told when the job is known not to end because of it.
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

// fullInTheEnd is the job's error if it is done, and found no room at last.
func (c *outcomes) fullInTheEnd() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.full.held) < minFull {
		return nil
	}
	return c.full.why
}

// tell ends a streak: what it has held back are failures like others.
func (c *outcomes) tell(s *streak) { c.reportAll(take(c, &s.held)) }

// take returns what c held back in held, which is held back no more.
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

// report counts and shows what became of an item.
func (c *outcomes) report(e progress.Event) {
	if e.Kind == KindVanished {
		c.progress.Add(progress.Vanished, 1)
	} else {
		c.progress.Add(progress.Errors, 1)
	}
	c.progress.Report(e)
}

// fail reports an item that failed; nil is no failure. What fails because the job is
// being cancelled is no news.
func (c *outcomes) fail(ctx context.Context, path string, err error) {
	c.failAt(ctx, path, err, listed{})
}

// failAt is fail for an object of the source, which was listed there.
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
	e := progress.Event{Type: "error", Path: path, Message: strings.ReplaceAll(err.Error(), "\n", "; ")} // of errors.Join
	switch {
	case errors.Is(err, transfer.ErrVanished), errors.Is(err, walk.ErrVanished):
		e.Type, e.Kind = "note", KindVanished
		c.doubtful(ctx, unsure{e, at})
	case errors.Is(err, vfs.ErrNoAnswer):
		c.hold(&c.silent, e, min(maxSilent, max(c.inFlight(), 1)), fmt.Errorf("%w: %w", ErrSilent, err))
	case errors.Is(err, vfs.ErrNoSpace), errors.Is(err, vfs.ErrQuota):
		c.noSpace.Add(1)
		c.hold(&c.full, e, maxFull, fmt.Errorf("%w: %w", ErrFull, err))
	case errors.Is(err, transfer.ErrChanged):
		c.changed.Add(1)
		e.Kind = KindChanged
		c.report(e)
	case errors.Is(err, vfs.ErrStale):
		c.doubtful(ctx, unsure{event: e})
	default:
		c.report(e)
	}
}

// hold adds a failure to a streak, and ends the job with why if there are as many as
// limit.
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
