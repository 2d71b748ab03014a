package lease

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

const (
	// Life is after which time a lease that was not refreshed is dead, by the store's clock.
	Life = 10 * time.Minute
	// refresh is how often a lease is put anew, and again how soon it is tried after a failure.
	refresh, again = time.Minute, 5 * time.Second
	// trust is for how long a holder relies on a lease that it could not put anew. It is shorter than Life, since a call may
	// have taken a while to reach the store.
	trust = 8 * time.Minute
	// ending bounds the calls by which Close removes the lease. A lease that stays then ends by its age.
	ending = 30 * time.Second
	// kept is how many leases of a holder are there at once, the newest. So for all of refresh one is there that is neither put nor
	// removed meanwhile, and a listing that takes no longer cannot miss them all.
	kept = 2
	// maxOld bounds the leases of earlier numbers that could not be removed, and that are tried again. Further ones end by age.
	maxOld = 16
)

// ErrLost says that a lease was not refreshed in time, or that another has removed it as dead.
var ErrLost = errors.New("the lease of the store was lost: another may have removed what this run relied on; run it again")

// errClosed ends the context of a lease that was closed.
var errClosed = errors.New("the lease was closed")

// Lease is a lease that is held. It is safe for concurrent use. The holder closes it.
type Lease struct {
	store object.Store
	o     *Options
	id    string
	self  process
	asked time.Time // when its holder began to ask for it

	ctx    context.Context
	cancel context.CancelCauseFunc
	expire *time.Timer    // ends ctx if nothing was put for all of trust
	tasks  sync.WaitGroup // the one that refreshes

	mu    sync.Mutex
	gen   int       // of the lease that is there
	since time.Time // when it began to be put, by our clock
	at    time.Time // when it was put, by the store's
	old   []string  // keys that were to be removed
}

// begin puts a lease that has been asked for since then, and keeps it refreshed. It does not look for others.
func begin(ctx context.Context, store object.Store, o *Options, asked time.Time) (*Lease, error) {
	var id [idDigits / 2]byte
	if _, err := io.ReadFull(o.Rand, id[:]); err != nil {
		return nil, fmt.Errorf("random id of a lease: %w", err)
	}
	l := &Lease{store: store, o: o, id: hex.EncodeToString(id[:]), self: o.self(), asked: asked}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.expire = time.AfterFunc(trust, l.lose)
	if err := l.put(l.ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("a lease of the store: %w", err), l.Close())
	}
	l.tasks.Go(l.keep)
	return l, nil
}

func (l *Lease) lose() { l.cancel(ErrLost) }

func (l *Lease) key(gen int) string {
	n := name{l.o.Kind, l.id, gen}
	return n.key()
}

// Mark is what all keys of the lease begin with, and no key of another one, in whatever store.
func (l *Lease) Mark() string { return fmt.Sprintf("%s%s-%s-", prefix, l.o.Kind, l.id) }

// put puts the lease of the next number, and removes the one that is two before it.
func (l *Lease) put(ctx context.Context) error {
	begun := l.o.Now()
	b, err := (&Holder{Kind: l.o.Kind, Host: l.o.Host, Command: l.o.Command, Began: l.asked.UTC(), process: l.self}).encode()
	if err != nil {
		return err
	}
	l.mu.Lock()
	gen := l.gen + 1
	l.mu.Unlock()
	if gen > maxGen {
		return errors.New("a lease of two hundred years")
	}
	key := l.key(gen)
	if _, err := l.store.Put(ctx, key, bytes.NewReader(b), object.PutOptions{Size: int64(len(b))}); err != nil {
		l.leave(key)
		return err
	}
	info, err := l.store.Stat(ctx, key) // which says the time by the store's clock
	if err == nil && gen > 1 {
		// The one before is asked for after the next was put. If it has gone, somebody took us for dead, and may not have
		// seen the next.
		if _, err = l.store.Stat(ctx, l.key(gen-1)); errors.Is(err, object.ErrNotExist) {
			l.lose()
		}
	}
	if err != nil {
		l.leave(key)
		return err
	}
	l.mu.Lock()
	l.gen, l.since, l.at = gen, begun, info.ModTime
	l.mu.Unlock()
	l.expire.Reset(trust - l.o.Now().Sub(begun))
	if gen > kept {
		l.leave(l.key(gen - kept))
	}
	_ = l.sweep(ctx) // it is tried again
	return nil
}

// leave notes a key that is to be removed.
func (l *Lease) leave(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.old = append(l.old, key)
	l.old = l.old[max(0, len(l.old)-maxOld):]
}

// sweep removes what was left. What cannot be removed now is tried again.
func (l *Lease) sweep(ctx context.Context) (err error) {
	l.mu.Lock()
	old := l.old
	l.old = nil
	current := l.key(l.gen)
	l.mu.Unlock()
	for _, key := range old {
		if key == current { // it was put after a failure of which nobody knew the outcome
			continue
		}
		if derr := l.store.Delete(ctx, key); derr != nil {
			l.leave(key)
			err = derr
		}
	}
	return err
}

// keep refreshes the lease until its context ends.
func (l *Lease) keep() {
	next := time.NewTimer(refresh)
	defer next.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-next.C:
		}
		if err := l.put(l.ctx); err != nil {
			next.Reset(again) // until expire ends it
			continue
		}
		next.Reset(refresh)
	}
}

// Context ends when the lease is lost, with [ErrLost] as its cause; when it is closed; and with the context that Take was given. What
// relies on the lease runs in it.
func (l *Lease) Context() context.Context { return l.ctx }

// StoreTime is about what the store's clock says now.
func (l *Lease) StoreTime() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at.Add(l.o.Now().Sub(l.since))
}

// Prove asks the store whether the lease is still there. It returns nil if it is, and was refreshed in time; an
// error that Is [ErrLost] if it is lost, for good; and else what kept it from finding out. Whatever it
// returns but nil, the caller publishes and removes nothing.
func (l *Lease) Prove(ctx context.Context) error {
	for {
		if l.ctx.Err() != nil {
			return context.Cause(l.ctx)
		}
		l.mu.Lock()
		gen, since := l.gen, l.since
		l.mu.Unlock()
		if l.o.Now().Sub(since) >= trust {
			l.lose()
			continue
		}
		_, err := l.store.Stat(ctx, l.key(gen))
		if !errors.Is(err, object.ErrNotExist) {
			if err != nil {
				err = fmt.Errorf("proof of the lease: %w", err)
			}
			return err
		}
		l.mu.Lock()
		same := gen == l.gen // else it was refreshed meanwhile
		l.mu.Unlock()
		if same {
			l.lose()
		}
	}
}

// Close ends the lease and removes it, also where the context that Take was given has ended. After an error a lease may be
// left, which ends by its age.
func (l *Lease) Close() error {
	l.cancel(errClosed)
	l.tasks.Wait()
	l.expire.Stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), ending)
	defer cancel()
	l.mu.Lock()
	for gen := max(1, l.gen-kept+1); gen <= l.gen; gen++ {
		l.old = append(l.old, l.key(gen))
	}
	l.gen = -1
	l.mu.Unlock()
	if err := l.sweep(ctx); err != nil {
		return fmt.Errorf("the lease of the store could not be removed, and ends after %v by itself: %w", Life, err)
	}
	return nil
}
