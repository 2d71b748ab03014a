package nlm

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/nfsserver/internal/callback"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// What happens to a lock whose grant a client
//
//   - accepts: the client has it.
//   - refuses, because the process has ended: it is freed. But if an earlier try may
//     have arrived, the client may have accepted that one, and refuses only the
//     repetition. Then it keeps the lock.
//   - does not answer for grantFor: if no try can have arrived, the client does not
//     know of the lock, and it is freed. Otherwise the client may believe that it has
//     the lock, and keeps it until it restarts. To let two clients write is worse than
//     to let one wait.
//   - asks for again, cancels or unlocks: that is done, and the grant is not sent any
//     more.
//
// outbox is what is to be sent to a client: one call at a time, in turn with other
// clients. It is guarded by Service.mu.
type outbox struct {
	grants   []*waiter
	results  []result
	question bool          // its host is to be asked for its state number
	round    []*waiter     // the grants that are still to be sent before the next pause
	failed   bool          // a grant of this round is to be tried again
	pause    time.Duration // before the next round
	sending  bool          // the client is in turn, is being called, or pauses
}

// result is the answer to an asynchronous call.
type result struct {
	proc *xdr.Proc
	args xdr.Appender
}

func (o *outbox) empty() bool { return len(o.grants) == 0 && len(o.results) == 0 && !o.sending }

func cookieBytes(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// sendGrant starts to tell the client that w has its lock. The caller has f's turn.
func (s *Service) sendGrant(f *file, w *waiter) {
	s.n.wakened.Add(1)
	f.sent = append(f.sent, w)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.since = time.Now()
	s.grants[w.cookie] = w
	w.c.out.grants = append(w.c.out.grants, w)
	s.startSending(w.c)
}

// sendResult queues the answer to an asynchronous call.
func (s *Service) sendResult(c *client, p *xdr.Proc, res xdr.Appender) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !may(c.home.results, maxClientResults, s.results, maxResults) {
		return // the client asks again
	}
	s.results++
	c.home.results++
	c.out.results = append(c.out.results, result{p, res})
	s.startSending(c)
}

// startSending makes sure that c's outbox is sent. s.mu is held.
func (s *Service) startSending(c *client) {
	if c.out.sending || s.closed {
		return
	}
	c.out.sending, c.out.pause = true, grantPause
	s.turn = append(s.turn, c)
	s.dispatch()
}

// dispatch begins as many calls as the bounds allow. The next is for the first client in
// turn of a home with the fewest calls under way. s.mu is held.
func (s *Service) dispatch() {
	for s.calling < maxCalling && len(s.turn) > 0 && !s.closed {
		least := 0
		for i, c := range s.turn {
			if c.home.calling < s.turn[least].home.calling {
				least = i
			}
		}
		c := s.turn[least]
		if !may(c.home.calling, maxClientCalling, s.calling, maxCalling) {
			return
		}
		s.turn = slices.Delete(s.turn, least, least+1)
		s.calling++
		c.home.calling++
		s.wg.Go(func() { s.send(c) })
	}
}

func (s *Service) send(c *client) {
	host, r, w, question := s.next(c)
	failed := false
	switch {
	case question:
		s.ask(host, c)
	case r != nil:
		// The answer is sent once: a client that has missed it asks again.
		if err := s.call.Call(s.ctx, host, r.proc, r.args, &xdr.Void{}); err != nil {
			s.o.Log.Debug("an answer was not taken", "client", c.key.name, "procedure", r.proc.Name, "error", err)
		}
	case w != nil:
		failed = s.tell(host, w)
	}
	s.sent(c, failed)
}

// next takes from c's outbox what to send next: a question, a result, or a grant.
func (s *Service) next(c *client) (host callback.Host, r *result, w *waiter, question bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.out.question {
		c.out.question = false
		return c.host, nil, nil, true
	}
	if len(c.out.results) > 0 {
		first := c.out.results[0]
		c.out.results = slices.Delete(c.out.results, 0, 1)
		s.results--
		c.home.results--
		return c.host, &first, nil, false
	}
	if len(c.out.round) == 0 {
		c.out.round, c.out.failed = slices.Clone(c.out.grants), false
	}
	if len(c.out.round) == 0 {
		return c.host, nil, nil, false
	}
	w, c.out.round = c.out.round[0], c.out.round[1:]
	return c.host, nil, w, false
}

// sent ends a call to c, and puts c in turn again, at once or after a pause, if there is
// more to send.
func (s *Service) sent(c *client, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calling--
	c.home.calling--
	out := &c.out
	out.failed = out.failed || failed
	switch {
	case s.closed || len(out.results) == 0 && len(out.grants) == 0 && !out.question:
		out.sending, out.round = false, nil
	case out.question || len(out.results) > 0 || len(out.round) > 0 || !out.failed:
		if len(out.round) == 0 && !out.failed {
			out.pause = grantPause
		}
		s.turn = append(s.turn, c)
	default:
		time.AfterFunc(out.pause, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.turn = append(s.turn, c)
			s.dispatch()
		})
		out.pause = min(2*out.pause, maxGrantPause)
	}
	s.dispatch()
}

// tell sends one grant, and reports whether to try it again after a pause.
func (s *Service) tell(host callback.Host, w *waiter) (again bool) {
	if !s.pending(w) {
		return false
	}
	if time.Since(w.since) > grantFor {
		s.abandon(w)
		return false
	}
	if w.async {
		// The answer is a call of its own: see grantedRes.
		s.count(w)
		if err := s.call.Call(s.ctx, host, nlm4.NLMPROC4_GRANTED_MSG, &w.args, &xdr.Void{}); err == nil || callback.MayHaveArrived(err) {
			w.arrived = true
		}
		return s.pending(w)
	}
	var res nlm4.Nlm4Res
	err := s.call.Call(s.ctx, host, nlm4.NLMPROC4_GRANTED, &w.args, &res)
	if err != nil {
		w.arrived = w.arrived || callback.MayHaveArrived(err)
		s.o.Log.Debug("a lock is granted, but the client does not hear it", "client", w.c.key.name, "error", err)
		return true
	}
	return s.answered(s.ctx, w, res.Stat.Stat, w.arrived)
}

// answered ends w's grant by the client's answer. before says that an earlier try may have
// arrived. again is true if the client wants to be asked later.
func (s *Service) answered(ctx context.Context, w *waiter, st nlm4.Nlm4Stats, before bool) (again bool) {
	switch {
	case st == nlm4.NLM4_DENIED_GRACE_PERIOD:
		return true // the client is in a grace of its own, as a server
	case st == nlm4.NLM4_GRANTED, before:
		s.finish(ctx, w, false)
	default:
		s.finish(ctx, w, true)
	}
	return false
}

// abandon ends a grant that the client has not answered for grantFor.
func (s *Service) abandon(w *waiter) {
	s.n.abandoned.Add(1)
	s.o.Log.Warn("a client does not answer when it is granted a lock", "client", w.c.key.name, "address", w.c.key.from(),
		"for", grantFor, "kept", w.arrived)
	s.finish(s.ctx, w, !w.arrived)
}

// finish ends w's grant, and frees its lock if free is true.
func (s *Service) finish(ctx context.Context, w *waiter, free bool) {
	w.c.gate.RLock()
	defer w.c.gate.RUnlock()
	f, err := s.open(ctx, w.f.h)
	if err != nil {
		return
	}
	defer s.end(f)
	if !s.settle(f, w.lock.Owner, w.span) || !free {
		return
	}
	if err := s.unlockSpan(ctx, f, w.c, w.lock.Owner, w.span); err != nil {
		s.o.Log.Warn("a lock that nobody wants is not freed", "client", w.c.key.name, "error", err)
	}
	s.wake(ctx, f)
}

// settle ends the sending of a grant of this lock, and reports whether there was one. The
// caller has f's turn.
func (s *Service) settle(f *file, owner vfs.Owner, span byterange.Span) bool {
	w := findWaiter(f.sent, owner, span)
	if w == nil {
		return false
	}
	f.sent = slices.DeleteFunc(f.sent, func(o *waiter) bool { return o == w })
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.grants, w.cookie)
	w.c.out.grants = slices.DeleteFunc(w.c.out.grants, func(o *waiter) bool { return o == w })
	return true
}

// pending reports whether w's grant is still to be sent.
func (s *Service) pending(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.grants[w.cookie] == w
}

// count counts a try whose answer comes as a call of its own.
func (s *Service) count(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.tries++
}

// grantedRes is procedure 15: the answer to a grant that was sent as a message.
func (s *Service) grantedRes(ctx context.Context, c *oncrpc.Call) error {
	a, err := args[nlm4.Nlm4Res](c)
	if err != nil {
		return err
	}
	from, user := callback.From(c.Remote).Addr(), oncrpc.UserOf(c.Remote)
	s.mu.Lock()
	var w *waiter
	var before bool
	if len(a.Cookie) == 8 {
		if w = s.grants[binary.BigEndian.Uint64(a.Cookie)]; w != nil && (w.c.key.addr != from || w.c.key.user != user || !w.async) {
			w = nil // another client's
		}
	}
	if w != nil {
		before = w.tries > 1
		w.tries-- // this one is answered
	}
	s.mu.Unlock()
	if w != nil {
		s.answered(context.WithoutCancel(ctx), w, a.Stat.Stat, before)
	}
	return c.Reply(xdr.Void{})
}
