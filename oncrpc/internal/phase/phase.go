// Package phase says how far one try of a client's call has come.
package phase

import "fmt"

// Phase is how far one try of a call has come. It does not say which goroutines still
// borrow a part of the call: a try may be over while the writer has its bulk. The lock
// that guards the call guards its phase.
//
//	phase     may be followed by
//	resting   queued
//	queued    batched over
//	batched   sent arriving over
//	sent      arriving over
//	arriving  over
//	over      resting
//
// TestPhases holds To to this table. With the race detector each test panics at a step
// that is not in it.
type Phase uint8

// The phases.
const (
	Resting  Phase = iota // no try: the call stands on no connection
	Queued                // in its connection's queue; nothing of it was written
	Batched               // in the batch that the connection's writer is at
	Sent                  // written; no part of a reply has been seen
	Arriving              // the reader fills the result's bulk
	Over                  // the reply is there, or there is none; a later reply is discarded
)

// String is the phase's name in the table.
func (p Phase) String() string {
	return [...]string{"resting", "queued", "batched", "sent", "arriving", "over"}[p]
}

// To moves on to next. It checks the step only with the race detector.
func (p *Phase) To(next Phase) {
	if checked && !p.may(next) {
		panic(fmt.Sprintf("oncrpc: a call goes from %v to %v", *p, next))
	}
	*p = next
}

// may reports whether next may follow p.
func (p Phase) may(next Phase) bool {
	switch p {
	case Resting:
		return next == Queued
	case Queued:
		return next == Batched || next == Over
	case Batched:
		return next == Sent || next == Arriving || next == Over
	case Sent:
		return next == Arriving || next == Over
	case Arriving:
		return next == Over
	case Over:
		return next == Resting
	}
	return false
}
