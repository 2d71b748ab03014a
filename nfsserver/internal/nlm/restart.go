package nlm

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/nfsserver/internal/callback"
	"github.com/nfsbox/nfsbox/nfsserver/internal/nsm"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	protonsm "github.com/nfsbox/nfsbox/proto/nsm"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// restarted frees what the clients of a notice held: those of its name at its address
// and, if a user of this host has sent it, of that user alone. What was locked under the
// state number of the notice was locked since the restart, and stays.
func (s *Service) restarted(ctx context.Context, n nsm.Notice) {
	for _, c := range s.atAddress(n) {
		s.mu.Lock()
		news := n.State == 0 || c.state != n.State
		c.state = n.State
		s.mu.Unlock()
		s.release(ctx, c, func(state int32) bool {
			if state == 0 {
				return news // the lock has no number; a repeated notice does not free it
			}
			return state != n.State
		})
	}
	s.askElsewhere(n)
}

// askElsewhere asks clients with the notice's name at other addresses whether they have
// restarted: a host with several addresses may tell it from any. Since any host can use
// the name, the notice causes only the question, which goes to the address from which the
// client has locked; see renewed. A notice of a client that no rule admits causes none.
// Clients on this host are not asked: it has not restarted while this server runs.
func (s *Service) askElsewhere(n nsm.Notice) {
	if !s.o.Table.Gate(n.From).Admits() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		here := c.key.user != "" || c.key.addr.IsLoopback()
		if !here && c.key.addr != n.From.Addr() && len(c.files) > 0 && nsm.SameName(c.key.name, n.Name) && time.Since(c.asked) >= askPause {
			c.asked = time.Now()
			c.out.question = true
			s.startSending(c)
		}
	}
}

// ask asks a client's status monitor for the state number of its host (SM_STAT: all
// monitors answer their own). A client that does not answer keeps its locks.
func (s *Service) ask(host callback.Host, c *client) {
	var res protonsm.SmStatRes
	err := s.call.Call(s.ctx, host, protonsm.SM_STAT, &protonsm.SmName{MonName: []byte(host.Name)}, &res)
	if err != nil || res.State <= 0 {
		s.o.Log.Info("a client is said to have restarted, from another address, and does not confirm it: its locks stay",
			"client", c.key.name, "address", c.key.from(), "error", err)
		return
	}
	s.renewed(c, res.State)
}

// renewed frees what c has locked under another state number than now, the present one of
// its host. Locks without a number stay.
func (s *Service) renewed(c *client, now int32) {
	s.mu.Lock()
	c.uses++
	s.mu.Unlock()
	s.release(s.ctx, c, func(state int32) bool { return state != 0 && state != now })
}

// atAddress returns the clients that a notice is about, and counts a use of each. leave
// gives them back.
func (s *Service) atAddress(n nsm.Notice) (all []*client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		if c.key.addr == n.From.Addr() && (n.User == "" || n.User == c.key.user) && nsm.SameName(c.key.name, n.Name) {
			c.uses++
			all = append(all, c)
		}
	}
	return all
}

// freeAll is procedure 23: a client gives up all that it holds, without having
// restarted.
func (s *Service) freeAll(ctx context.Context, c *oncrpc.Call) error {
	a, err := args[nlm4.Nlm4Notify](c)
	if err != nil {
		return err
	}
	n := nsm.Notice{Name: string(a.Name), From: callback.From(c.Remote), User: oncrpc.UserOf(c.Remote)}
	for _, client := range s.atAddress(n) {
		s.release(ctx, client, func(int32) bool { return true })
	}
	return c.Reply(xdr.Void{})
}

// crashed does what a restart of the server would: it frees the locks of all clients, and
// begins a grace. The monitor tells the clients.
func (s *Service) crashed(ctx context.Context) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.clients))
	for _, c := range all {
		c.uses++
	}
	s.beginGrace(s.o.Grace > 0 && !s.closed && s.nsm.Owed() > 0)
	s.mu.Unlock()
	for _, c := range all {
		s.release(ctx, c, func(int32) bool { return true })
	}
}

// release frees what c holds under states for which which is true, and gives c back.
// What c locks meanwhile comes either before, and is freed, too, or after, and stays.
func (s *Service) release(ctx context.Context, c *client, which func(state int32) bool) {
	ctx = context.WithoutCancel(ctx)
	defer s.leave(c)
	freed := s.strip(ctx, c, which)
	for _, h := range freed {
		f, err := s.open(ctx, h)
		if err != nil {
			return
		}
		s.wake(ctx, f)
		s.end(f)
	}
	if len(freed) > 0 {
		s.n.restarts.Add(1)
		s.o.Log.Info("the locks of a client are freed", "client", c.key.name, "address", c.key.from(), "files", len(freed))
	}
}

// strip frees what c holds under states for which which is true, and returns the files in
// which there was something to free.
func (s *Service) strip(ctx context.Context, c *client, which func(state int32) bool) (freed []vfs.Handle) {
	c.gate.Lock()
	defer c.gate.Unlock()
	s.mu.Lock()
	var all []vfs.Handle
	for f := range c.files {
		all = append(all, f.h)
	}
	s.mu.Unlock()
	for _, h := range all {
		f, err := s.open(ctx, h)
		if err != nil {
			return freed
		}
		if s.stripFile(ctx, f, c, which) {
			freed = append(freed, h)
		}
		s.end(f)
	}
	return freed
}

// stripFile is strip for one file, whose turn the caller has.
func (s *Service) stripFile(ctx context.Context, f *file, c *client, which func(state int32) bool) (some bool) {
	for _, w := range slices.Clone(f.queue) {
		if w.c == c && which(w.state) {
			s.dequeue(f, w)
			some = true
		}
	}
	// A reservation has no state number: it is freed like a lock without one.
	if which(0) {
		s.dropShares(f, func(o share) bool {
			some = some || o.c == c
			return o.c == c
		})
	}
	for _, owner := range f.ofClient(c, func(have *holding) bool { return which(have.state) }) {
		s.releaseHolding(ctx, f, owner)
		some = true
	}
	return some
}

// releaseHolding frees all that owner has locked of f. The caller has f's turn.
func (s *Service) releaseHolding(ctx context.Context, f *file, owner vfs.Owner) {
	have := f.held[owner]
	for _, w := range slices.Clone(f.sent) {
		if w.lock.Owner == owner {
			s.settle(f, owner, w.span)
		}
	}
	all := byterange.Span{Last: byterange.Max}
	if err := s.unlockSpan(ctx, f, have.c, owner, all); err != nil {
		s.o.Log.Warn("the locks of a client that has restarted are not freed", "client", have.c.key.name, "error", err)
	}
}
