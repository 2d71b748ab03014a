package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/snapshot/lease"
)

// Reading has a store that several hosts use keep what is read of it, until the store is closed: a lease in the store holds
// back their prunes. A directory of this host needs none: its readers are seen by whoever opens it alone, and wait for that. A lease that is lost is
// taken again.
//
// What cannot have a lease is read without. Each byte is compared with a checksum, so nothing that is read is wrong: an
// object that was removed meanwhile is an error.
type Reading struct {
	// Lease is how the lease is taken. Its Kind and Waiting are set here. After its Wait the store is read without a lease.
	Lease lease.Options
	// Note is told that a prune is waited for (kind "waiting"), and that no lease is held, none for a while, or one again (kind
	// "lease"). It may be called from any goroutine, until the store is closed.
	Note func(kind, text string)
}

// readWait is how long a prune that is under way is waited for: a little longer than one counts that was killed. Then the store is
// read without a lease.
const readWait = lease.Life + time.Minute

// NewReading is the Reading of a command of this host; see [lease.OfCommand].
func NewReading(command string, rand io.Reader, note func(kind, text string)) *Reading {
	o := lease.OfCommand(command, rand)
	o.Wait = readWait
	return &Reading{Lease: o, Note: note}
}

// askAgain is how often a store is tried that another process has for itself.
const askAgain = time.Second

// open opens a store of this host. While a prune has that for itself it is waited for, as for one of a store that several hosts use.
func (r *Reading) open(ctx context.Context, open func() (*Store, error)) (*Store, error) {
	begun := r.Lease.Now()
	for told := false; ; told = true {
		s, err := open()
		if !InUse(err) || r.Lease.Now().Sub(begun) >= r.Lease.Wait {
			return s, err
		}
		if !told {
			r.Note("waiting", "it waits until this has ended: "+err.Error())
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// held looks after the lease that a store has for its reader.
type held struct {
	r     *Reading
	s     *Store
	o     lease.Options
	stop  context.CancelFunc
	keeps sync.WaitGroup
}

// unheld is what follows from reading without a lease.
const unheld = "do not forget and prune there before this has ended, as what is removed meanwhile is an error"

// take takes the lease for a reader of s; nil if it cannot be had. The error is that of ctx.
func (r *Reading) take(ctx context.Context, s *Store) (*held, error) {
	o := r.Lease
	o.Kind = lease.Read
	o.Waiting = func(h lease.Holder) { r.Note("waiting", "it waits until this has ended: "+h.Text()) }
	held := &held{r: r, s: s, o: o}
	var of context.Context
	of, held.stop = context.WithCancel(ctx)
	l, err := lease.Take(of, s.forLeases(), o)
	if err != nil {
		held.stop()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s: %w", s.Text, context.Cause(ctx))
		}
		r.Note("lease", fmt.Sprintf("%s is read without a lease: %s. There is none: %s", s.Text, unheld, firstLine(err)))
		return nil, nil
	}
	held.keeps.Go(func() { held.keep(of, l) })
	return held, nil
}

// firstLine is why there is no lease. What follows is that nothing could be removed, either.
func firstLine(err error) string {
	why, _, _ := strings.Cut(err.Error(), "\n")
	return why
}

// keep takes a lease again that is lost, until ctx ends. One that stays in the store is over by its age.
func (h *held) keep(ctx context.Context, l *lease.Lease) {
	for {
		<-l.Context().Done()
		lost := errors.Is(context.Cause(l.Context()), lease.ErrLost)
		err := l.Close()
		if !lost {
			if err != nil {
				h.r.Note("lease", err.Error())
			}
			return
		}
		h.r.Note("lease", h.s.Text+" is read without a lease for a while: it was not refreshed in time, and is lost. Another one is taken")
		if l, err = lease.Retake(ctx, h.s.forLeases(), h.o); err != nil {
			if ctx.Err() == nil {
				h.r.Note("lease", fmt.Sprintf("%s is read without a lease from now on: %s. There is none: %s", h.s.Text, unheld, firstLine(err)))
			}
			return
		}
		h.r.Note("lease", h.s.Text+" is read with a lease again: what was forgotten and pruned meanwhile is an error, and nothing else is")
	}
}

// end removes the lease.
func (h *held) end() {
	h.stop()
	h.keeps.Wait()
}
