package rpcfault

import (
	"fmt"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/xdr"
)

// Rule says which calls a fault befalls.
type Rule struct {
	// Procs are the procedures that the rule is about; nil: all calls of all
	// programs. Version does not matter.
	Procs []*xdr.Proc
	// If, when set, is asked as well. The message is only looked at. It is
	// called under the proxy's lock.
	If func(*Message) bool

	// Skip lets the first calls pass. Of those behind them, every Every-th is
	// hit; if Every is 0, each with Probability; if that is 0 too, all are.
	Skip        uint64
	Every       uint64
	Probability float64
	// Budget is how often the rule fires at most; 0: there is no bound.
	Budget uint64

	Fault Fault
}

// Fault is what befalls a call or its reply. Only what its Kind names matters.
type Fault struct {
	Kind Kind
	// Wait is how long a Delay lasts, at most a Reorder and always a Refuse;
	// a Delay lasts up to Jitter longer.
	Wait, Jitter time.Duration
	// Count is how many replies a Reorder lets pass, how many copies more a
	// Duplicate sends, and how many bytes a fragment has; 0 is 1.
	Count int
	// Empty is how many empty fragments stand before each one, at most 1024.
	Empty int
	// At is how many bytes of the message, the mark before it included, pass
	// before a CutInCall or CutInReply; Anywhere leaves it to chance. 0 is
	// none; what the message does not have is all of it.
	At int
	// Reset cuts with a RST instead of a FIN: what is on its way may be lost.
	Reset bool
	// Edit is what EditCall and EditReply do.
	Edit Edit
}

// Anywhere is a Fault's At that chance decides: before any byte of the message,
// its first included, but not behind its last.
const Anywhere = -1

// Kind is a kind of fault.
type Kind uint8

// The kinds. What is done to a reply is done after the server has executed the
// call.
const (
	DropCall       Kind = iota // the call does not reach the server
	DropReply                  // the reply does not reach the client; the connection stays
	Hold                       // this call and all behind it on its connection are taken and never answered
	DelayCall                  // the call arrives later, others meanwhile
	DelayReply                 // the reply arrives later, others meanwhile
	DuplicateCall              // the server gets the call more than once
	DuplicateReply             // the client gets the reply more than once
	Reorder                    // the reply arrives behind Count others, or after Wait
	CutBefore                  // the connection ends before any byte of the call has left
	CutInCall                  // the connection ends within the call
	CutInReply                 // the connection ends within the reply: at At 0 the call is executed and nobody told
	EditCall                   // the call is not what the client sent
	EditReply                  // the reply is not what the server sent
	Fragment                   // the reply comes in fragments of Count bytes
	FragmentCall               // the call comes in fragments of Count bytes
	Refuse                     // the connection ends before the call, and new ones are refused for Wait
	kinds
)

var kindNames = [kinds]string{"DropCall", "DropReply", "Hold", "DelayCall", "DelayReply", "DuplicateCall", "DuplicateReply",
	"Reorder", "CutBefore", "CutInCall", "CutInReply", "EditCall", "EditReply", "Fragment", "FragmentCall", "Refuse"}

// String implements fmt.Stringer.
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("fault %d", uint8(k))
}

// ofReply reports whether the fault befalls the reply of its call.
func (k Kind) ofReply() bool {
	switch k {
	case DropReply, DelayReply, DuplicateReply, Reorder, CutInReply, EditReply, Fragment:
		return true
	}
	return false
}

// firing is a fault that has been decided on, with the chance that is left in it.
type firing struct {
	Fault
	rand *sim.Rand
}

// rule is a Rule at work. Proxy.mu guards it.
type rule struct {
	Rule
	rand  *sim.Rand
	seen  uint64 // calls that it was about
	fired uint64
}

func (r *rule) about(m *Message) bool {
	if r.Procs != nil && !slices.ContainsFunc(r.Procs, func(p *xdr.Proc) bool {
		return p.Program == m.Program && p.Number == m.Proc
	}) {
		return false
	}
	return r.If == nil || r.If(m)
}

// fires decides about one call that the rule is about. It always draws the same
// amount, so that a decision does not depend on those before it.
func (r *rule) fires() (firing, bool) {
	chance := float64(r.rand.Uint64()>>11) / (1 << 53)
	seed := r.rand.Uint64()
	r.seen++
	if r.seen <= r.Skip || (r.Budget > 0 && r.fired == r.Budget) {
		return firing{}, false
	}
	switch {
	case r.Every > 0:
		if (r.seen-r.Skip)%r.Every != 0 {
			return firing{}, false
		}
	case r.Probability > 0:
		if chance >= r.Probability {
			return firing{}, false
		}
	}
	r.fired++
	return firing{r.Fault, sim.NewRand(seed)}, true
}
