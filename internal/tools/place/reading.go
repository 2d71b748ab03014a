package place

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/snapshot/lease"
)

// Reading has a store that several hosts use keep what is read of it, until the store is closed: a lease in the store holds
// back their prunes. A directory of this host needs none: its readers are seen by whoever opens it alone.
//
// What cannot have a lease is read without. Each byte is compared with a checksum, so nothing that is read is wrong: an
// object that was removed meanwhile is an error.
type Reading struct {
	// Lease is how the lease is taken. Its Kind and Waiting are set here. After its Wait the store is read without a lease.
	Lease lease.Options
	// Note is told that a prune is waited for (kind "waiting"), and that no lease is held, or none any more (kind "lease"). It may be
	// called from any goroutine, until the store is closed.
	Note func(kind, text string)
}

// held is a lease that a store has for its reader.
type held struct {
	*lease.Lease
	note   func(kind, text string)
	unlink func() bool // nobody is told any more that it is lost
}

// unheld is what follows from reading without a lease.
const unheld = "do not forget and prune there before this has ended, as what is removed meanwhile is an error"

// take takes the lease for a reader of s; nil if it cannot be had. The error is that of ctx.
func (r *Reading) take(ctx context.Context, s *Store) (*held, error) {
	o := r.Lease
	o.Kind = lease.Read
	o.Waiting = func(h lease.Holder) { r.Note("waiting", "it waits until this has ended: "+h.Text()) }
	l, err := lease.Take(ctx, s.forLeases(), o)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s: %w", s.Text, context.Cause(ctx))
		}
		why, _, _ := strings.Cut(err.Error(), "\n") // what follows is that nothing could be removed, either
		r.Note("lease", fmt.Sprintf("%s is read without a lease: %s. There is none: %s", s.Text, unheld, why))
		return nil, nil
	}
	return &held{l, r.Note, context.AfterFunc(l.Context(), func() {
		if errors.Is(context.Cause(l.Context()), lease.ErrLost) {
			r.Note("lease", fmt.Sprintf("%s is read without a lease from now on: %s. It was not refreshed in time, and is lost", s.Text, unheld))
		}
	})}, nil
}

// end removes the lease. One that stays is over by its age.
func (h *held) end() {
	h.unlink()
	if err := h.Close(); err != nil {
		h.note("lease", err.Error())
	}
}
