package lease

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

const (
	// poll is how often one that waits looks again. An exclusive lease, which was withdrawn, is tried again after up to twice that,
	// by chance: two that gave way to each other do not meet again and again.
	poll = 5 * time.Second
	// maxRead bounds the leases that are read at one look, to see whose they are.
	maxRead = 64
	// maxSeen bounds the leases whose age is watched by one that waits, beside their age by the store's clock.
	maxSeen = 1 << 12
	// maxDead bounds the dead leases that one look notes, to remove them. The next look has the next ones.
	maxDead = 1 << 12
	// maxSlow bounds how often a look is begun again that took too long to be relied on.
	maxSlow = 3
)

// Options say what lease is taken.
type Options struct {
	Kind    Kind
	Now     func() time.Time // with a monotonic reading, as time.Now has it
	Rand    io.Reader        // cryptographically random
	Host    string           // of this machine, for others to read
	Command string           // likewise
	// Wait is for how long others are waited for that are in the way; 0: not at all.
	Wait time.Duration
	// Waiting, if it is not nil, is called once, when the wait begins, with the first of those that are in the way.
	Waiting func(Holder)

	process *process // tests are other processes
}

// OfCommand are the options of a command of this host, but for the kind: the lease names the host and the command
// to others. rand is cryptographically random.
func OfCommand(command string, rand io.Reader) Options {
	host, _ := os.Hostname() // a lease may lack it
	return Options{Now: time.Now, Rand: rand, Host: host, Command: command}
}

func (o *Options) self() process {
	if o.process != nil {
		return *o.process
	}
	return self()
}

// ErrHeld says that somebody else has a lease that is in the way. The error is a *HeldError.
var ErrHeld = errors.New("somebody else uses the store")

// HeldError is an [ErrHeld].
type HeldError struct {
	Holder Holder // the first of those that are in the way
	More   int    // how many others are
}

// Error implements error.
func (e *HeldError) Error() string {
	more := ""
	if e.More > 0 {
		more = fmt.Sprintf(", and %d more", e.More)
	}
	return fmt.Sprintf("%v: %s%s: wait until that has ended; if its process or host has died, its lease ends %v after it was refreshed last",
		ErrHeld, e.Holder.Text(), more, Life)
}

// Unwrap returns ErrHeld.
func (e *HeldError) Unwrap() error { return ErrHeld }

// Take takes a lease. If others are in the way, and stay there for all of o.Wait, it is a [HeldError]. The lease is refreshed until
// ctx ends, or [Lease.Close]; the caller calls that in any case.
func Take(ctx context.Context, store object.Store, o Options) (*Lease, error) {
	if !o.Kind.known() {
		return nil, fmt.Errorf("%q is no kind of a lease", o.Kind)
	}
	t := &taker{store: store, o: &o, begun: o.Now(), seen: make(map[string]time.Time)}
	for {
		l, err := begin(ctx, store, &o, t.begun)
		if err != nil {
			return nil, err
		}
		held, err := t.look(l)
		for err == nil && held != nil && !o.Kind.exclusive() { // it stays, and others see it
			if err = t.wait(l.ctx, held, poll); err == nil {
				held, err = t.look(l)
			}
		}
		if err == nil && held == nil {
			return l, nil
		}
		if cerr := l.Close(); err == nil {
			err = cerr
		}
		if err == nil {
			var by time.Duration
			if by, err = t.chance(); err == nil {
				err = t.wait(ctx, held, by)
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// taker is a Take under way.
type taker struct {
	store object.Store
	o     *Options
	begun time.Time
	told  bool
	seen  map[string]time.Time // when leases were met first, by our clock
}

// wait waits a while for others, or returns held if it is too late for that.
func (t *taker) wait(ctx context.Context, held *HeldError, by time.Duration) error {
	left := t.o.Wait - t.o.Now().Sub(t.begun)
	if left <= 0 {
		return held
	}
	if !t.told && t.o.Waiting != nil {
		t.o.Waiting(held.Holder)
	}
	t.told = true
	timer := time.NewTimer(min(by, left))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// chance is a time between poll and twice that.
func (t *taker) chance() (time.Duration, error) {
	var b [4]byte
	if _, err := io.ReadFull(t.o.Rand, b[:]); err != nil {
		return 0, fmt.Errorf("chance: %w", err)
	}
	return poll + poll*time.Duration(binary.BigEndian.Uint16(b[:]))/(1<<16), nil
}

// look looks for leases that are in the way of l; nil if there is none. Dead ones are removed, and then it looks again: a
// holder that was taken for dead may have put its next lease meanwhile.
func (t *taker) look(l *Lease) (*HeldError, error) {
	for slow := 0; ; {
		begun := t.o.Now()
		v := view{t: t, l: l}
		err := v.list()
		switch {
		case err != nil && l.ctx.Err() != nil:
			return nil, context.Cause(l.ctx)
		case err != nil:
			return nil, fmt.Errorf("leases of the store: %w", err)
		case !v.own:
			return nil, errors.New("leases of the store: the listing lacks the lease that was put just before: listings of this store cannot be relied on")
		case t.o.Now().Sub(begun) >= refresh: // it may have missed a lease that was refreshed meanwhile
			if slow++; slow == maxSlow {
				return nil, fmt.Errorf("leases of the store: to list them takes longer than %v: remove what else is in %s", refresh, prefix)
			}
			continue
		}
		for _, key := range v.dead {
			if err := t.store.Delete(l.ctx, key); err != nil {
				return nil, fmt.Errorf("a dead lease: %w", err)
			}
		}
		if !v.moved && len(v.dead) == 0 {
			return v.held, nil
		}
	}
}

// view is what one listing of the leases has shown.
type view struct {
	t *taker
	l *Lease

	own   bool       // the lease of l itself
	held  *HeldError // nil: nobody is in the way
	last  string     // the id of the one that was counted last
	dead  []string   // keys, maxDead at most
	moved bool       // one was refreshed, or removed, while it was looked at
	read  int
}

// list goes through the leases once.
func (v *view) list() error {
	for info, err := range object.All(v.l.ctx, v.t.store, prefix) {
		if err != nil {
			return err
		}
		if len(v.dead) == maxDead { // the rest is for the next look
			v.own = true
			return nil
		}
		n, ok := parseName(info.Key)
		switch {
		case ok && n.id == v.l.id:
			v.own = true
		case ok && !n.kind.exclusive() && !v.t.o.Kind.exclusive():
		default:
			v.judge(&info, n, ok)
		}
	}
	return nil
}

// judge looks at a lease that is in the way if its holder is alive. ok is false if its name is none.
func (v *view) judge(info *object.Info, n name, ok bool) {
	h := Holder{Kind: n.kind}
	if !ok {
		h = Holder{Kind: "something unknown", Command: info.Key}
	}
	dead := v.t.aged(v.l, info)
	if !dead && ok && v.read < maxRead {
		v.read++
		said, err := v.t.read(v.l.ctx, info.Key)
		if errors.Is(err, object.ErrNotExist) {
			v.moved = true
			return
		}
		if err == nil {
			said.Kind = n.kind
			h = said
			dead = said.Boot != "" && said.Host == v.t.o.Host && said.Boot == v.l.self.Boot && gone(said.process)
		}
	}
	switch {
	case dead:
		v.dead = append(v.dead, info.Key)
	case v.held == nil:
		v.held = &HeldError{Holder: h}
	case !ok || n.id != v.last: // leases of one holder are neighbours
		v.held.More++
	}
	v.last = n.id
}

// aged reports whether a lease is dead by its age: by the store's clock, or because we have seen it unchanged for long
// enough.
func (t *taker) aged(l *Lease, info *object.Info) bool {
	if l.StoreTime().Sub(info.ModTime) > Life {
		return true
	}
	now := t.o.Now()
	first, ok := t.seen[info.Key]
	if !ok && len(t.seen) < maxSeen {
		t.seen[info.Key] = now
	}
	return ok && now.Sub(first) > Life
}

// read reads what a lease says. What it returns as an error is no reason to take it for dead.
func (t *taker) read(ctx context.Context, key string) (Holder, error) {
	r, _, err := t.store.Get(ctx, key, 0, maxContent+1)
	if err != nil {
		return Holder{}, err
	}
	defer r.Close() //nolint:errcheck // nothing is written
	b, err := io.ReadAll(io.LimitReader(r, maxContent+1))
	if err != nil {
		return Holder{}, err
	}
	return decodeHolder(b)
}
