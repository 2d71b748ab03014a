package dirfs

import (
	"errors"
	"os"
	"time"
)

const (
	// A sync of the whole file system may take wholeTime, and wholeCall more for each call that it
	// serves. One that takes longer has waited for what others write. Then objects are synced one by
	// one, for wholeRest times as long as it took. So no more than a part in wholeRest+1 of the time
	// is lost to what others write.
	wholeTime = 250 * time.Millisecond
	wholeCall = 10 * time.Millisecond
	wholeRest = 9
)

// errAlone says that objects are to be synced one by one.
var errAlone = errors.New("dirfs: no sync of the whole file system")

// whole is one sync of the root's file system in place of those of its objects. It makes the same
// things stable, for all calls that wait, and takes a small part of the time of a sync for each.
//
// It is relied upon only if it tells of every failure. sync goes through a descriptor that was open
// before this FS wrote anything, and so reports what could not be written since, whoever asked for
// it to be written. It reports each failure once and does not say whose it is. So after the first
// one each object is synced by itself, for as long as the FS lives: that tells whose bytes are lost.
type whole struct {
	dev    uint64
	file   *os.File     // by which sync does it
	sync   func() error // nil: objects are synced one by one
	now    func() time.Time
	rounds share

	// Only the round that has its turn uses these.
	failed bool
	rest   time.Time // until then objects are synced one by one
}

// or makes an object of the file system dev stable by a sync of all of it, or else by alone.
func (w *whole) or(dev uint64, alone func() error) error {
	if w.sync != nil && w.dev == dev && w.rounds.do(dev, w.round) == nil {
		return nil
	}
	return alone()
}

func (w *whole) round(calls int) error {
	began := w.now()
	if w.failed || began.Before(w.rest) {
		return errAlone
	}
	if err := w.sync(); err != nil {
		w.failed = true
		return err
	}
	end := w.now()
	if took := end.Sub(began); took > wholeTime+time.Duration(calls)*wholeCall {
		w.rest = end.Add(wholeRest * took)
	}
	return nil
}

// end closes the descriptor. Files that are still open are synced by themselves from then on.
func (w *whole) end() {
	if w.file != nil {
		_ = w.file.Close() // nothing was written by it
	}
}
