package pace

import (
	"context"
	"fmt"
	"time"
)

// Class is a kind of call. Each has its own limit, so that bulk never keeps
// metadata waiting.
type Class uint8

// The classes.
const (
	Metadata Class = iota
	Read
	Write

	Classes = 3 // how many there are
)

// String is the class in lower case, as metrics name it.
func (c Class) String() string {
	switch c {
	case Metadata:
		return "metadata"
	case Read:
		return "read"
	case Write:
		return "write"
	}
	return fmt.Sprintf("class %d", uint8(c))
}

// Outcome is what became of a call, as far as it tells something about load.
type Outcome uint8

// The outcomes.
const (
	OK      Outcome = iota // answered, be it with an error of the file's
	Busy                   // refused for now: NFS3ERR_JUKEBOX
	Timeout                // no reply in time, or sent again
	Gone                   // cancelled, or the connection was lost: says nothing about load
)

// Options say how many calls may be under way.
type Options struct {
	// Max holds the limit of each class: 0 finds it and keeps finding it, any
	// other number is the limit. Less than 0 counts as 1.
	Max [Classes]int
	// Now is the clock; nil is time.Now. It must not run backwards.
	Now func() time.Time
}

// Limiter admits calls to one server. All methods may be called concurrently; a
// class must be one of those above.
type Limiter struct {
	classes [Classes]turns
}

// New makes a limiter with nothing under way. It has no goroutine and needs no
// closing.
func New(o Options) *Limiter {
	if o.Now == nil {
		o.Now = time.Now
	}
	l := new(Limiter)
	for c := range l.classes {
		l.classes[c].init(o.Max[c], o.Now)
	}
	return l
}

// Enter waits until a call of class c may begin; the first to come is the first to go. The
// only error is ctx's, and nothing is held then. After nil the caller makes one
// call and then Leave. It allocates nothing if it need not wait.
func (l *Limiter) Enter(ctx context.Context, c Class) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := &l.classes[c]
	w := t.join()
	if w == nil {
		return nil
	}
	if waits, ok := ctx.Value(onWait{}).(func(bool)); ok {
		waits(true)
		defer waits(false)
	}
	select {
	case <-w.token:
		t.admitted(w)
		return nil
	case <-ctx.Done():
		t.giveUp(w)
		return ctx.Err()
	}
}

// onWait is the key of OnWait in a context.
type onWait struct{}

// OnWait returns a context for one call, with which Enter calls waits(true) before it waits for the
// call's turn, and waits(false) when it returns. If the call need not wait, it calls neither. So a
// caller can tell the time in a queue of its own from the time that the server takes.
func OnWait(ctx context.Context, waits func(bool)) context.Context {
	return context.WithValue(ctx, onWait{}, waits)
}

// Leave ends what Enter began. took is the time from sending the call to its
// reply, without what it waited before; bytes is the file data that it moved. Both
// count for OK alone.
func (l *Limiter) Leave(c Class, took time.Duration, bytes int, o Outcome) {
	if l.classes[c].leave(took, bytes, o) {
		l.widen()
	}
}

// SetMax changes Options.Max of all classes to n, also for calls that wait. Those in flight are not
// taken back. With 0 the search begins anew.
func (l *Limiter) SetMax(n int) {
	for c := range l.classes {
		l.classes[c].setMax(n)
	}
}

// widen tells all classes that the server is far away.
func (l *Limiter) widen() {
	for c := range l.classes {
		l.classes[c].widen()
	}
}

// Snapshot is the state of one class.
type Snapshot struct {
	Limit    int // calls that may be under way; it moves a little all the time
	InFlight int // calls that are
	Waiting  int // calls that wait for their turn

	// Counted since the limiter was made.
	Waits    uint64 // calls that had to wait
	BackOffs uint64 // times that the limit fell because of Busy or Timeout

	Smooth time.Duration // the mean time that recent calls took; 0 before it is known
}

// Snapshot returns the state of all classes. Classes are looked at one after the
// other.
func (l *Limiter) Snapshot() [Classes]Snapshot {
	var s [Classes]Snapshot
	for c := range s {
		s[c] = l.classes[c].snapshot()
	}
	return s
}
