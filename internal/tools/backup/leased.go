package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot/lease"
)

const (
	// pruneWait is how long a backup waits for a prune of the store that is under way. Then it has failed.
	pruneWait = time.Hour
	// maxAgain bounds how often a backup begins again, as its lease was lost. Then that is its error.
	maxAgain = 8
)

// errLost is a backup that has lost its lease, and has left nothing that relies on it.
var errLost = fmt.Errorf("nothing was published: %w", lease.ErrLost)

// Leased is Run with a lease in o.Store, by which a prune of whatever host keeps what the backup relies on, and on top of what
// [Latest] and [Partial] find there. It sets Base, Partial, Prove and Mark of o. A dry run has no lease, and o.Store may be nil then.
//
// A backup that loses its lease ends at once, and publishes nothing. Then another lease is taken, and the backup begins again on top
// of what was noted: so all that it relies on is found there under the new lease. how says whose the lease is.
func Leased(ctx context.Context, o Options, how lease.Options) (sum Summary, err error) {
	if o.DryRun {
		if err := o.find(ctx); err != nil {
			return sum, err
		}
		return Run(ctx, o)
	}
	how.Kind, how.Wait = lease.Backup, pruneWait
	how.Waiting = func(h lease.Holder) {
		o.Progress.Report(progress.Event{Type: "note", Kind: "waiting", Message: "it waits until this has ended: " + h.Text()})
	}
	take := lease.Take
	for again := uint64(0); ; again++ {
		l, err := o.lease(ctx, how, take)
		if err != nil {
			return sum, err
		}
		sum, err = o.under(ctx, l)
		sum.Again = again
		if !errors.Is(err, errLost) || again == maxAgain {
			return sum, err
		}
		o.Progress.Report(progress.Event{Type: "note", Kind: "lease", Message: fmt.Sprintf("%v. Another lease is taken now, and the backup begins again on top of what was noted", err)})
		o.Filter.Anew()
		take = lease.Retake
	}
}

// find finds what the backup is on top of.
func (o *Options) find(ctx context.Context) (err error) {
	if o.Store != nil {
		if o.Base, err = Latest(ctx, o.Store, o.Meta.Name, o.Progress); err == nil {
			o.Partial, err = Partial(ctx, o.Store, o.Meta.Name, o.Base, o.Progress)
		}
	}
	if err != nil {
		return fmt.Errorf("the snapshots of %s: %w", o.Meta.Name, err)
	}
	if o.Begun != nil {
		o.Begun()
	}
	return nil
}

// lease takes a lease. The end of ctx ends the wait for it, but not the lease: what was done is noted then. The caller closes it.
func (o *Options) lease(ctx context.Context, how lease.Options, take func(context.Context, object.Store, lease.Options) (*lease.Lease, error)) (*lease.Lease, error) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	l, err := take(lasting, o.Store, how)
	stop()
	if err != nil {
		cancel()
		return nil, fmt.Errorf("a lease of the store: %w", errors.Join(ctx.Err(), err))
	}
	context.AfterFunc(l.Context(), cancel)
	return l, nil
}

// under backs up under a lease, and closes it. If the lease is lost the error is errLost, but where a root could not be taken back.
func (o Options) under(ctx context.Context, l *lease.Lease) (sum Summary, err error) {
	defer func() {
		if err := l.Close(); err != nil {
			o.Progress.Report(progress.Event{Type: "note", Kind: "lease", Message: fmt.Sprintf("the lease in the store ends by its age: %v", err)})
		}
	}()
	running, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(l.Context(), end)()
	o.Prove, o.Mark = l.Prove, l.Mark()
	if err = o.find(running); err == nil {
		sum, err = Run(running, o)
	}
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(l.Context()), lease.ErrLost) && !errors.Is(err, snapshot.ErrUnproved) {
		err = errLost
	}
	return sum, err
}
