package nlm

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/oncrpc"
)

// op is an operation on an entry. It may outlive its caller.
type op struct {
	s      *shared
	e      *entry
	caller context.Context
	ctx    context.Context // its own
	cancel context.CancelFunc

	over atomic.Bool // the caller has its answer, or has gone
	done chan error  // the answer
	turn bool        // it has the entry's
}

// run makes an operation, and returns what it tells. If the caller goes first, it has settleTime left.
func (s *shared) run(ctx context.Context, k *key, uid int64, do func(*op)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e, err := s.enter(k, uid)
	if err != nil {
		return err
	}
	o := &op{s: s, e: e, caller: ctx, done: make(chan error, 1)}
	o.ctx, o.cancel = context.WithCancel(s.life)
	go func() {
		defer s.leave(e)
		defer o.end()
		do(o)
	}()
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
	}
	if !o.claim() {
		return <-o.done
	}
	o.limit()
	return &cutError{ctx.Err()}
}

func (o *op) end() {
	o.cancel()
	if o.turn {
		<-o.e.turn
	}
}

// claim reports whether the caller still waits. From then on it does not.
func (o *op) claim() bool { return o.over.CompareAndSwap(false, true) }

// tell answers the caller, if it still waits.
func (o *op) tell(err error) {
	if o.claim() {
		o.done <- err
	}
}

// limit ends the operation after settleTime.
func (o *op) limit() {
	t := time.AfterFunc(settleTime, o.cancel)
	context.AfterFunc(o.ctx, func() { t.Stop() })
}

// take waits for the entry's turn.
func (o *op) take(ctx context.Context) error {
	select {
	case o.e.turn <- struct{}{}:
		o.turn = true
		return nil
	case <-ctx.Done():
	case <-o.ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return errClosed
}

// assure makes sure that the server still holds what the owner has locked, or notes the loss. Its calls
// do not end with the caller: a LOCK that is given up might be executed after a later UNLOCK.
func (o *op) assure() error {
	if len(o.e.set) == 0 {
		return nil
	}
	o.s.contact(o.ctx)
	if o.e.epoch == o.s.epoch.Load() {
		return nil
	}
	return o.s.verify(o.ctx, o.e, true)
}

// report is tell, but if the owner has to be told of a loss, it is told that. If the caller has gone,
// the next one is.
func (o *op) report(err error) {
	if !o.claim() {
		return
	}
	if lost := o.s.told(o.e); lost != nil {
		err = lost
	}
	o.done <- err
}

// lock takes a lock.
func (o *op) lock(auth oncrpc.Auth, span byterange.Span) {
	err := o.take(o.caller)
	if err == nil {
		err = o.assure()
	}
	if err == nil {
		err = o.s.room(o.e, span)
	}
	if err != nil || o.over.Load() || o.e.lost != nil { // failed, not wanted any more, or first to be told of a loss
		o.report(err)
		return
	}
	before, epoch := slices.Clone(o.e.set), o.s.epoch.Load()
	err = o.s.lock(o.ctx, o.e, auth, span, false)
	if epoch != o.s.epoch.Load() { // the call may have met another server than before did
		o.e.mixed = true
		if slices.ContainsFunc(before, span.Overlaps) {
			o.e.again = o.e.again.Put(span)
		}
	}
	switch _, cut := errors.AsType[*cutError](err); {
	case err == nil && o.claim():
		o.s.n.granted.Add(1)
		o.s.hold(o.e, slices.Clone(before).Put(span), auth, epoch)
		o.done <- o.afterwards(auth, before, span)
		return
	case err != nil && !cut:
		if errors.Is(err, errGrace) {
			o.s.graced()
		}
		o.tell(err)
		return
	}
	o.tell(err)
	o.settle(auth, before, span)
}

// afterwards looks whether the call that has granted span has met another server than the owner's
// earlier locks. If those are lost, span is freed again.
func (o *op) afterwards(auth oncrpc.Auth, before byterange.Set, span byterange.Span) error {
	if len(before) == 0 || o.e.epoch == o.s.epoch.Load() {
		return nil
	}
	_ = o.s.verify(o.ctx, o.e, true) // of what is not known then the keeper will
	lost := o.s.told(o.e)
	if lost != nil {
		if !o.insist(func() error { return o.s.unlock(o.ctx, o.e, auth, span) }) {
			o.unsettled()
		}
		o.s.hold(o.e, slices.Clone(o.e.set).Take(span), auth, o.e.epoch)
	}
	return lost
}

// settle brings the server to where it was before a lock of span that was granted to nobody, or may
// have been. Where the owner had a lock of another kind it has a shared one from then on, which
// never meets a conflict.
func (o *op) settle(auth oncrpc.Auth, before byterange.Set, span byterange.Span) {
	o.limit()
	o.s.n.settled.Add(1)
	set, ok := slices.Clone(before), true
	at := span.First
	free := func(last uint64) {
		if at <= last {
			ok = o.insist(func() error { return o.s.unlock(o.ctx, o.e, auth, byterange.Span{First: at, Last: last}) }) && ok
		}
	}
	for _, have := range before {
		if !have.Overlaps(span) {
			continue
		}
		part := byterange.Span{First: max(have.First, span.First), Last: min(have.Last, span.Last)}
		if part.First > 0 {
			free(part.First - 1)
		}
		at = part.Last + 1
		if have.Exclusive != span.Exclusive {
			ok = o.insist(func() error { return o.s.lock(o.ctx, o.e, auth, part, false) }) && ok
			set = set.Put(part)
		}
	}
	free(span.Last)
	if o.s.hold(o.e, set, auth, o.s.epoch.Load()); !ok {
		o.unsettled()
	}
}

// insist makes a call until the server answers, whatever that is. A server that has a grace is asked
// for graceWait, since some unlock nothing in it. ok is false if there was no answer.
func (o *op) insist(call func() error) (ok bool) {
	until := time.Now().Add(graceWait)
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := call()
		if !unanswered(err) && (!errors.Is(err, errGrace) || time.Now().After(until)) {
			return true
		}
		if !sleep(o.ctx, pause) {
			return false
		}
	}
}

// unanswered reports whether a call has not reached the lock manager, or may not have.
func unanswered(err error) bool {
	_, cut := errors.AsType[*cutError](err)
	_, gone := errors.AsType[*UnavailableError](err)
	return cut || gone && !missing(err) || errors.Is(err, oncrpc.ErrNotSent)
}

func (o *op) unsettled() {
	o.s.n.unsettled.Add(1)
	o.s.o.Log.Warn("the server does not answer, and may hold a lock that nobody has", "server", o.s.o.Server)
}

// unlock frees span. It goes on when the caller has gone.
func (o *op) unlock(auth oncrpc.Auth, span byterange.Span) {
	if err := o.take(o.ctx); err != nil {
		o.tell(err)
		return
	}
	_ = o.assure() // the next call fails for the same reason
	if len(o.e.set) == 0 && o.s.link.rpc.Load() == nil {
		o.report(nil)
		return
	}
	held := slices.ContainsFunc(o.e.set, span.Overlaps)
	var err error
	ok := o.insist(func() error {
		err = o.s.unlock(o.ctx, o.e, auth, span)
		if unanswered(err) && o.claim() {
			o.done <- err
			o.limit()
		}
		return err
	})
	if held && ok && o.e.epoch != o.s.epoch.Load() {
		o.doubt(auth, span)
	}
	o.s.hold(o.e, slices.Clone(o.e.set).Take(span), auth, o.e.epoch)
	if !ok {
		o.unsettled()
	}
	o.report(err)
}

// doubt notes a loss if a connection was made while a lock was freed: the server may have restarted
// before, and given the lock to another. In a grace it has not.
func (o *op) doubt(auth oncrpc.Auth, span byterange.Span) {
	if o.s.proves(o.s.epoch.Load(), o.e) {
		return
	}
	_, err := o.s.test(o.ctx, &o.e.h, o.s.number(0, o.e.owner.name), auth, span)
	if !errors.Is(err, errGrace) {
		o.s.lose(o.e, []byterange.Span{span}, "the connection broke while it was freed, and the server may have restarted")
	}
}

// sleep waits, and reports whether ctx still lives.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
