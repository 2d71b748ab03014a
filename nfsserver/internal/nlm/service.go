package nlm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/nfsserver/internal/callback"
	"github.com/nfsbox/nfsbox/nfsserver/internal/nsm"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/vfs"
)

// Options say what a Service locks. Table is required.
type Options struct {
	Table *export.Table
	Log   *slog.Logger
	// Grace is how long after a start only locks that are reclaimed are granted. It
	// begins only if clients held locks before. 0: there is no grace, and a reclaim is
	// like any other lock.
	Grace time.Duration
	// StateDir keeps the clients that hold locks and the state number. It must
	// exist. "": nothing survives a restart, and no client is told of one.
	StateDir string
	// Hostname is what the server calls itself to clients.
	Hostname string
	// Now dates a state number when there is none; nil is time.Now.
	Now func() time.Time
	// Cookie is where the numbers of grants begin. It should be random: answers to
	// grants from before a restart may still arrive.
	Cookie uint64
	// MaxHoldings bounds the owners of locks of one home, each counted once for each
	// file; 0 is DefaultMaxHoldings. A file system may open a file for each, so it
	// should be a part of the files that it may open.
	MaxHoldings int
	// Dial reaches clients; nil is [callback.DialNet].
	Dial callback.Dial
}

// Service is the lock manager and the status monitor of one server. The state of
// each connection is a *peer.Conn. All methods may be called concurrently.
type Service struct {
	o    Options
	nsm  *nsm.Monitor
	call *callback.Caller // for grants and results; it sends each call once
	n    counters

	// all unlocks in all exports: a client may give up what it holds, even if the
	// rules refuse it everything else by now.
	all vfs.Locker

	poke chan struct{} // wakes the goroutine that looks after queues
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup // all goroutines; added to under mu, before closed

	// watching is held while the monitor is told to watch a client or to forget one, so
	// that it does not forget a client that is just coming back. It is taken before mu.
	watching sync.Mutex

	mu      sync.Mutex // guards what follows, and what says so in client and file
	closed  bool
	clients map[clientKey]*client
	homes   map[string]*home // of the clients, by oncrpc.ShareOf
	files   map[vfs.Handle]*file
	queued  map[*file]struct{} // those with a queue
	grants  map[uint64]*waiter // sent, and not yet answered
	cookie  uint64
	locks   int // ranges of all clients; the next counts are of all clients, too
	waits   int
	shares  int
	results int       // answers that wait to be sent
	calling int       // calls to clients that are under way
	turn    []*client // those to be called next
	graceBy *time.Timer
	inGrace bool
	// fullAgain is when sayFull may log again.
	fullAgain time.Time
}

type counters struct {
	granted, denied, blocked, graceDenied atomic.Uint64
	wakened, abandoned, restarts          atomic.Uint64
}

// Stats are counters of a Service. Those up to Grace are present values, the others only
// grow.
type Stats struct {
	Clients int  // known clients: they hold something, or did recently
	Watched int  // of them, those in the state directory
	Owed    int  // clients that have yet to be told of the server's restart
	Locks   int  // ranges locked
	Queued  int  // locks that wait
	Grace   bool // only reclaims are granted

	Granted     uint64 // locks given at once
	Denied      uint64 // locks refused because of another's
	Blocked     uint64 // locks put into a queue
	Wakened     uint64 // locks granted out of a queue
	Abandoned   uint64 // grants that the client has not answered
	GraceDenied uint64 // locks refused because of the grace
	Restarts    uint64 // of clients that held locks
}

// New reads the state directory; see [nsm.New]. The grace begins at once, and lasts until
// Options.Grace after Start.
func New(o Options) (*Service, error) {
	if o.Table == nil {
		return nil, errors.New("nlm: no exports")
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.MaxHoldings = cmp.Or(o.MaxHoldings, DefaultMaxHoldings)
	if o.Dial == nil {
		o.Dial = callback.DialNet
	}
	s := &Service{o: o, all: o.Table.Locker(), cookie: o.Cookie, poke: make(chan struct{}, 1),
		call:    &callback.Caller{Dial: o.Dial, Machine: o.Hostname, Timeout: callTimeout, Once: true},
		clients: make(map[clientKey]*client), homes: make(map[string]*home), files: make(map[vfs.Handle]*file),
		queued: make(map[*file]struct{}), grants: make(map[uint64]*waiter),
	}
	var err error
	s.nsm, err = nsm.New(nsm.Options{
		Dir: o.StateDir, Hostname: o.Hostname, Log: o.Log, Now: o.Now,
		Call:      &callback.Caller{Dial: o.Dial, Machine: o.Hostname, Timeout: callTimeout},
		Restarted: s.restarted, Crashed: s.crashed,
	})
	if err != nil {
		return nil, fmt.Errorf("nlm: %w", err)
	}
	s.inGrace = o.Grace > 0 && s.nsm.Owed() > 0
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Start tells the recorded clients of the restart, and looks after queues, until Close.
func (s *Service) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.wg.Go(s.tend)
	s.beginGrace(s.inGrace)
	s.nsm.Start()
}

// beginGrace begins a grace if held is true, and ends one otherwise. s.mu is held.
func (s *Service) beginGrace(held bool) {
	if s.graceBy != nil {
		s.graceBy.Stop()
	}
	s.inGrace = held
	if !held {
		return
	}
	s.nsm.Keep()
	s.o.Log.Info("only locks of before the restart are granted", "for", s.o.Grace, "clients", s.nsm.Owed())
	var end *time.Timer
	end = time.AfterFunc(s.o.Grace, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.graceBy == end && !s.closed { // else a later grace has begun after this timer had fired
			s.inGrace = false
			s.wg.Go(s.nsm.Settle)
		}
	})
	s.graceBy = end
}

// Close ends all work, and frees the locks of all clients. The clients stay in the state
// directory, to be told when the server is back. Call it after the server has answered
// its last call.
func (s *Service) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	if s.graceBy != nil {
		s.graceBy.Stop()
	}
	s.stop()
	s.mu.Unlock()
	s.nsm.Close()
	s.wg.Wait()
	err := s.all.ReleaseLocks(context.Background(), func(o *vfs.Owner) bool { return strings.HasPrefix(o.Client, ownerPrefix) })
	if err != nil {
		return fmt.Errorf("nlm: freeing the locks: %w", err)
	}
	return nil
}

// Stats returns the service's counters.
func (s *Service) Stats() Stats {
	st := Stats{
		Watched: s.nsm.Watched(), Owed: s.nsm.Owed(),
		Granted: s.n.granted.Load(), Denied: s.n.denied.Load(), Blocked: s.n.blocked.Load(),
		Wakened: s.n.wakened.Load(), Abandoned: s.n.abandoned.Load(),
		GraceDenied: s.n.graceDenied.Load(), Restarts: s.n.restarts.Load(),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Clients, st.Locks, st.Queued, st.Grace = len(s.clients), s.locks, s.waits, s.inGrace
	return st
}

// RPC is NLM 4 and NSM 1 for a server.
func (s *Service) RPC() []oncrpc.Service {
	h := make([]oncrpc.Handler, len(nlm4.NLM_V4.Procs))
	once := make([]bool, len(h))
	for _, b := range s.bindings() {
		for i := range nlm4.NLM_V4.Procs {
			if &nlm4.NLM_V4.Procs[i] == b.proc {
				h[i], once[i] = b.handler, b.once
			}
		}
	}
	return []oncrpc.Service{{Program: &nlm4.NLM_V4, Handlers: h, Once: once}, s.nsm.RPC()}
}

// clientKey identifies a client.
type clientKey struct {
	addr netip.Addr
	user string // as oncrpc.UserOf has it; "": it is no known user of this host
	name string
}

// from is the client's address, with the user in front if there is one.
func (k *clientKey) from() string {
	from := "local"
	if k.addr.IsValid() {
		from = k.addr.String()
	}
	if k.user != "" {
		from = k.user + "@" + from
	}
	return from
}
