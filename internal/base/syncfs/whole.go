package syncfs

import (
	"errors"
	"sync/atomic"
	"time"
)

const (
	// A sync of the whole file system may take longest, and longestCall more for each call that it
	// serves. One that takes longer has waited for what others write. Then objects are synced one by
	// one, for rests times as long as it took. So no more than a part in rests+1 of the time is lost
	// to what others write.
	longest     = 250 * time.Millisecond
	longestCall = 10 * time.Millisecond
	rests       = 9
)

// ErrAlone says that no sync of the whole can be had now. Nothing has failed: objects are to be
// synced one by one.
var ErrAlone = errors.New("syncfs: no sync of the whole file system")

// Whole is one sync of a file system in place of those of its objects, for all calls that wait.
// A nil Whole syncs each object by itself. Its methods may be called concurrently.
type Whole struct {
	sync   func(calls int) error
	least  int32
	now    func() time.Time
	inside atomic.Int32 // calls of Or
	rounds Rounds

	// Only the round that has its turn uses these.
	failed bool
	rest   time.Time // until then objects are synced one by one
}

// New returns the Whole of a file system that is known to tell of failures (Tells).
//
// sync has to report each failure since the caller's first write, whoever asked for the bytes to be
// written: it is syncfs(2) through a descriptor that has been open since before. It is told how many
// calls it serves, and may return ErrAlone. With fewer than least calls at once, each object is synced by itself.
func New(sync func(calls int) error, least int, now func() time.Time) *Whole {
	return &Whole{sync: sync, least: int32(least), now: now}
}

// Or makes an object stable by a sync of the whole, or else by alone.
func (w *Whole) Or(alone func() error) error {
	if w == nil {
		return alone()
	}
	defer w.inside.Add(-1)
	if w.inside.Add(1) < w.least {
		return alone()
	}
	if w.rounds.Do(0, w.round) == nil {
		return nil
	}
	return alone()
}

// round serves that many calls. A failure is reported once, and does not say whose bytes are
// lost. So after the first one each object is synced by itself, which does.
func (w *Whole) round(calls int) error {
	began := w.now()
	if w.failed || began.Before(w.rest) {
		return ErrAlone
	}
	if err := w.sync(calls); err != nil {
		w.failed = !errors.Is(err, ErrAlone)
		return err
	}
	end := w.now()
	if took := end.Sub(began); took > longest+time.Duration(calls)*longestCall {
		w.rest = end.Add(rests * took)
	}
	return nil
}
