package upkeep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot/lease"
)

const (
	// batch is how many objects are removed for one proof of the lease, and atOnce how many at the same time.
	batch, atOnce = 64, 8
	// maxLooks bounds how often the snapshots are listed anew because there were more of them. Then the prune gives up.
	maxLooks = 16
)

var (
	// ErrEmpty says that the store has no snapshot: all of its content would be removed.
	ErrEmpty = errors.New("the store has no snapshot, so a prune would remove all that it has: if that is meant, say so (--all)")
	// ErrUnreadable says that what a snapshot needs could not be found out. Nothing was removed.
	ErrUnreadable = errors.New("nothing is removed while a snapshot cannot be read, as what it needs is not known")
	// ErrUnproved says that two listings of the store contradict each other. Nothing was removed.
	ErrUnproved = errors.New("nothing is removed, as a listing of the store lacks what is there")
)

// Prune removes the content that no snapshot and no checkpoint needs. It has the store for itself meanwhile: it holds an exclusive lease, and proves it
// before each few removals. It refuses to begin if a snapshot cannot be read, or if a listing contradicts another one.
//
// An error that comes later leaves a store of which less was removed. sum says how much.
func Prune(ctx context.Context, store object.Store, o PruneOptions) (sum PruneSummary, err error) {
	p := &prune{store: store, o: &o, sum: &sum, known: make(map[string]bool)}
	sum.DryRun = o.DryRun
	if p.grace = o.Grace; p.grace == 0 {
		p.grace = DefaultGrace
	}
	if len(o.Without) > 0 && !o.DryRun {
		return sum, errors.New("nothing is removed: snapshots that are there cannot count as forgotten")
	}
	if o.DryRun {
		p.now = o.Lease.Now
		return sum, p.run(ctx)
	}
	o.Lease.Kind = lease.Prune
	l, err := lease.Take(ctx, store, o.Lease)
	if err != nil {
		return sum, err
	}
	p.lease, p.now = l, l.StoreTime
	err = p.run(l.Context())
	if err != nil && ctx.Err() == nil && l.Context().Err() != nil {
		err = context.Cause(l.Context())
	}
	return sum, errors.Join(err, l.Close())
}

// prune is a Prune under way.
type prune struct {
	store object.Store
	o     *PruneOptions
	sum   *PruneSummary
	lease *lease.Lease // nil: nothing is removed
	now   func() time.Time
	grace time.Duration
	known map[string]bool // keys of roots; true: it was gone through in this round
	needs *round[need]
	dead  []object.Info // to be removed, batch at most
}

func (p *prune) run(ctx context.Context) error {
	p.needs = newNeeds(roundObjects)
	all := &listing{store: p.store}
	for first := true; ; first = false {
		if err := p.mark(ctx, first); err != nil {
			return err
		}
		p.needs.sort()
		if err := all.join(ctx, p.needs, func(info *object.Info, n *need) error { return p.have(ctx, info, n) }, p.lack); err != nil {
			return err
		}
		if err := p.flush(ctx); err != nil {
			return err
		}
		if !p.needs.next() {
			return nil
		}
		for key := range p.known {
			p.known[key] = false
		}
	}
}

// mark collects what the snapshots need, until a listing shows none that was not gone through.
func (p *prune) mark(ctx context.Context, first bool) error {
	for range maxLooks {
		roots, err := snapshot.Roots(ctx, p.store, "")
		if err != nil {
			return notRead("", err)
		}
		if err := p.proved(ctx, roots); err != nil {
			return err
		}
		roots = slices.DeleteFunc(roots, func(r snapshot.Ref) bool { return p.o.Without[r.Text()] })
		if first && len(roots) == 0 && len(p.known) == 0 && !p.o.All {
			return ErrEmpty
		}
		more := false
		for i := range roots {
			r := &roots[i]
			if p.known[r.Key()] {
				continue
			}
			more = true
			if err := p.snapshot(ctx, r); err != nil {
				return err
			}
		}
		if !more && !first {
			return nil
		}
		first = false // another listing has to say the same
	}
	return fmt.Errorf("nothing is removed: each of %d listings of the store had new snapshots", maxLooks)
}

// proved returns an error if a listing of the roots lacks one that is there.
func (p *prune) proved(ctx context.Context, roots []snapshot.Ref) error {
	there := make(map[string]struct{}, len(roots))
	for i := range roots {
		there[roots[i].Key()] = struct{}{}
	}
	for key := range p.known {
		if _, ok := there[key]; ok {
			continue
		}
		switch _, err := p.store.Stat(ctx, key); {
		case errors.Is(err, object.ErrNotExist): // it was forgotten meanwhile
		case err != nil:
			return err
		default:
			return fmt.Errorf("%w: %s", ErrUnproved, key)
		}
	}
	return nil
}

// snapshot collects what one snapshot needs.
func (p *prune) snapshot(ctx context.Context, r *snapshot.Ref) error {
	s, err := snapshot.Open(ctx, p.store, *r)
	if errors.Is(err, object.ErrNotExist) {
		return nil // it was forgotten meanwhile, or the next listing has it again
	}
	if err == nil {
		_, err = s.Uses(ctx, snapshot.UsesOptions{Use: func(u *snapshot.Use, _ *snapshot.Site) error {
			p.needs.add(need{u.Sum, -1})
			return nil
		}})
	}
	if cerr := ctx.Err(); cerr != nil {
		return cerr
	}
	if err != nil {
		drop := "forget it as " + r.Text()
		if r.Partial {
			drop = "drop it by forget --partial --name " + r.Name
		}
		return fmt.Errorf("%s: %w", r.Text(), notRead(drop, err))
	}
	if _, again := p.known[r.Key()]; !again {
		if r.Partial {
			p.sum.Partials++
		} else {
			p.sum.Snapshots++
		}
	}
	p.known[r.Key()] = true
	return nil
}

// notRead is an [ErrUnreadable], with what to do. drop is how to do without the snapshot, if that is known.
func notRead(drop string, err error) error {
	advice := ""
	switch {
	case errors.Is(err, object.ErrForeign), errors.Is(err, snapshot.ErrName):
		advice = "; move what is not the store's out of it, and run this again"
	case errors.Is(err, fs.ErrPermission):
		advice = "; run this as a user who may read it"
	case errors.Is(err, snapshot.ErrDamaged) && drop != "":
		advice = "; run check to see what is damaged, then mend it by backup --verify, or " + drop
	}
	return fmt.Errorf("%w: %w%s", ErrUnreadable, err, advice)
}

// lack counts an object that is needed, and not there.
func (p *prune) lack(*need) error {
	p.sum.Missing++
	return nil
}

// have judges an object of the store.
func (p *prune) have(ctx context.Context, info *object.Info, n *need) error {
	p.sum.Objects++
	p.sum.Bytes += uint64(info.Size)
	switch {
	case n != nil:
		return nil
	case p.now().Sub(info.ModTime) <= p.grace:
		p.sum.Young++
		p.sum.YoungBytes += uint64(info.Size)
		return nil
	}
	if p.dead = append(p.dead, *info); len(p.dead) < batch {
		return nil
	}
	return p.flush(ctx)
}

// flush removes what was found. The lease is proved before.
func (p *prune) flush(ctx context.Context) error {
	dead := p.dead
	p.dead = p.dead[:0]
	if len(dead) == 0 {
		return nil
	}
	if p.lease == nil {
		p.count(dead)
		return nil
	}
	if err := p.lease.Prove(ctx); err != nil {
		return err
	}
	errs := make([]error, len(dead))
	var all sync.WaitGroup
	turn := make(chan struct{}, atOnce)
	for i := range dead {
		turn <- struct{}{}
		all.Go(func() {
			defer func() { <-turn }()
			if errs[i] = ctx.Err(); errs[i] == nil {
				errs[i] = p.store.Delete(ctx, dead[i].Key)
			}
		})
	}
	all.Wait()
	for i := range dead {
		if errs[i] == nil {
			p.count(dead[i : i+1])
		}
	}
	return errors.Join(errs...)
}

// count counts what was removed, or would be.
func (p *prune) count(dead []object.Info) {
	for i := range dead {
		size := uint64(dead[i].Size)
		p.sum.Removed++
		p.sum.RemovedBytes += size
		p.o.Progress.Add(progress.Files, 1)
		p.o.Progress.Add(progress.Bytes, size)
	}
}
