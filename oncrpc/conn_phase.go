package oncrpc

// phase is how far one try of a call has come. hub.mu guards it. The phase says
// nothing about who borrows a part of the call (see borrowers): a try may be over while
// the writer still has its bulk.
//
//	phase     may be followed by
//	resting   queued
//	queued    batched over
//	batched   sent arriving over
//	sent      arriving over
//	arriving  over
//	over      resting
//
// TestPhases holds to may to this table, and with the race detector each test panics at
// a step that is not in it.
type phase uint8

const (
	resting  phase = iota // no try: the call stands on no connection
	queued                // in its connection's queue; nothing of it was written
	batched               // in the batch that the connection's writer is at
	sent                  // written; no part of a reply has been seen
	arriving              // the reader fills the result's bulk
	over                  // the reply is there, or err says why not; a later reply is discarded
)

func (p phase) String() string {
	return [...]string{"resting", "queued", "batched", "sent", "arriving", "over"}[p]
}

// may reports whether next may follow p.
func (p phase) may(next phase) bool {
	switch p {
	case resting:
		return next == queued
	case queued:
		return next == batched || next == over
	case batched:
		return next == sent || next == arriving || next == over
	case sent:
		return next == arriving || next == over
	case arriving:
		return next == over
	case over:
		return next == resting
	}
	return false
}

// borrowers are the goroutines of the connection that use a part of the call. While
// there is one, Call does not return.
type borrowers uint8

const (
	byWriter borrowers = 1 << iota // auth, args and the bulk of args
	byReader                       // res and its bulk
)

// callerState is what the goroutine in Call is about.
type callerState uint8

const (
	awake     callerState = iota // it runs, or reads, or writes
	sleeping                     // it waits for the token in wake, until nothing is lent any more
	following                    // it waits for the token, and may be asked to read meanwhile
)

// duty is whether the caller writes its connection's queue.
type duty uint8

const (
	noDuty          duty = iota
	writesAlone          // no other call is under way on the connection
	writesInCompany      // others are: it lets them queue theirs first
)
