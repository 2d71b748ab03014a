package localio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/session"
	"github.com/nfsbox/nfsbox/proto/localio"
)

// Options say where a Service listens, and within which bounds. UUID is required.
type Options struct {
	// Dir is the directory of the socket; "" is session.DefaultDir.
	Dir string
	// UUID is this server's, and no other's: random, made at each start.
	UUID [localio.UUID_SIZE]byte
	// Trusted hands out descriptors also to processes that could do more by them
	// than their callers may: see [vfs.HostOpen].
	Trusted     bool
	MaxFiles    int // of one client; 0 is DefaultMaxFiles
	MaxSessions int // 0 is DefaultMaxSessions
	// Log receives the clients that come. nil discards.
	Log *slog.Logger
}

func (o *Options) check() error {
	o.Dir = cmp.Or(o.Dir, session.DefaultDir())
	o.MaxFiles = cmp.Or(o.MaxFiles, DefaultMaxFiles)
	o.MaxSessions = cmp.Or(o.MaxSessions, DefaultMaxSessions)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	switch {
	case o.Dir == "":
		return errors.New("localio: no directory for the socket, since XDG_RUNTIME_DIR is not set")
	case o.UUID == [localio.UUID_SIZE]byte{}:
		return errors.New("localio: the server has no UUID")
	case o.MaxFiles < 1 || o.MaxFiles > MaxFiles:
		return fmt.Errorf("localio: %d files of a client; it may have 1 to %d", o.MaxFiles, MaxFiles)
	case o.MaxSessions < 1:
		return fmt.Errorf("localio: %d clients; there must be room for one", o.MaxSessions)
	}
	return nil
}

// Service is the server's half of LOCALIO. The state of each RPC connection is a
// *peer.Conn. All methods may be called concurrently.
type Service struct {
	o  Options
	l  *session.Listener
	ns uint64 // our user namespace; 0: not known
	n  counters

	aloft *tally // files that are being opened, or are open and not yet sent
	held  *tally // slots that are not free

	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup // all other goroutines; added to for clients that are not gone

	accepted chan struct{}  // closed when no more clients are accepted
	places   chan struct{}  // a token for each goroutine that receives: see maxStuck
	readers  sync.WaitGroup // those goroutines; added to until accepted is closed

	mu        sync.Mutex
	closed    bool
	strangers []*client                        // guarded by mu; not bound, the oldest first
	pending   map[[commitmentSize]byte]*client // guarded by mu; the strangers that sent HELLO
	bound     map[*client]struct{}             // guarded by mu
}

const commitmentSize = 32

// New begins to listen for clients, which find it when [Service.RPC] is served. Where
// LOCALIO is not possible, the error is errors.ErrUnsupported.
func New(o Options) (*Service, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Service{
		o: o, ns: session.UserNS(), aloft: newTally(maxAloft, maxAloftOfUser), held: newTally(math.MaxInt, maxFilesOfUser),
		accepted: make(chan struct{}), places: make(chan struct{}, maxStrangers+1+o.MaxSessions+maxStuck),
		pending: make(map[[commitmentSize]byte]*client), bound: make(map[*client]struct{}),
	}
	var err error
	if s.l, err = session.Listen(o.Dir, o.UUID); err != nil {
		return nil, err
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	go s.accept()
	return s, nil
}

// Close ends all sessions, their pages first, and removes the socket. It may be
// called several times.
func (s *Service) Close() error {
	s.mu.Lock()
	s.closed = true
	all := append([]*client(nil), s.strangers...)
	for c := range s.bound {
		all = append(all, c)
	}
	s.mu.Unlock()
	s.stop()
	for _, c := range all {
		c.end(errClosed)
	}
	err := s.l.Close()
	<-s.accepted
	err = errors.Join(err, s.awaitReaders())
	s.wg.Wait()
	return err
}

var errClosed = errors.New("the server is closed")

// awaitReaders waits until no goroutine receives any more, but only for readersTime: a
// client may block one.
func (s *Service) awaitReaders() error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.readers.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-time.After(readersTime):
		return errors.New("localio: a client has sent a descriptor that does not close, and so holds up a thread until this process ends")
	}
}

// accept takes clients until the service is closed.
func (s *Service) accept() {
	defer close(s.accepted)
	pause := time.Duration(0)
	for {
		select {
		case s.places <- struct{}{}:
		case <-s.ctx.Done():
			return
		}
		conn, err := s.l.Accept()
		if err == nil {
			pause = 0
			s.admit(conn)
			continue
		}
		<-s.places
		if errors.Is(err, net.ErrClosed) {
			return
		}
		pause = min(max(2*pause, acceptPauseMin), acceptPauseMax)
		s.o.Log.Error("accepting a local client failed, trying again", slog.String("socket", s.l.Path()),
			slog.Any("error", err), slog.Duration("pause", pause))
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
			return
		}
	}
}

// admit begins to serve a connection as a stranger. The caller has put a token into places.
func (s *Service) admit(conn *session.Conn) {
	s.mu.Lock()
	c := newClient(s, conn)
	closed := s.closed
	var victim *client
	if !closed {
		s.strangers = append(s.strangers, c)
		victim = s.crowd()
	}
	s.mu.Unlock()
	if victim != nil {
		s.n.crowded.Add(1)
		victim.end(errors.New("too many who are not known yet"))
	}
	if closed {
		c.end(errClosed)
	}
	s.readers.Go(c.serve)
}

// crowd returns the stranger to close if there are too many: the oldest one of the user
// with the most of them. s.mu is held.
func (s *Service) crowd() *client {
	if len(s.strangers) <= maxStrangers {
		return nil
	}
	victim, _ := ofMost(slices.Values(s.strangers))
	return victim
}

// displaced returns the client whose session must end to make room for that of c. It is
// one of the user with the most sessions, if that is more than c's user would have with
// c, and else c itself. It is nil while there is room. s.mu is held.
func (s *Service) displaced(c *client) *client {
	if len(s.bound) < s.o.MaxSessions {
		return nil
	}
	has := 1
	for o := range s.bound {
		if o.peer.UID == c.peer.UID {
			has++
		}
	}
	if victim, most := ofMost(maps.Keys(s.bound)); most > has {
		return victim
	}
	return c
}

// ofMost returns the first client of the user with the most clients, and how many those
// are.
func ofMost(clients iter.Seq[*client]) (first *client, most int) {
	of := make(map[uint32]int)
	for c := range clients {
		of[c.peer.UID]++
	}
	for c := range clients {
		if n := of[c.peer.UID]; n > most {
			first, most = c, n
		}
	}
	return first, most
}

// counters only grow, but for files.
type counters struct {
	files                                 atomic.Int64
	bound, full, crowded, unknown, broken atomic.Uint64
	opened, revoked                       atomic.Uint64
	why                                   [localio.SESSION_CROWDED + 1]atomic.Uint64
}

// Stats are counters of a Service. Those up to Files are present values, the others only
// grow.
type Stats struct {
	UUID      string // of the server, as it is written
	Socket    string // its path
	Strangers int    // connections that are not yet bound to an RPC connection
	Sessions  int    // clients that are local
	Files     int    // that they have

	Bound   uint64 // clients that became local
	Full    uint64 // clients that did not, or whose session ended, at the bound MaxSessions
	Crowded uint64 // strangers closed at the bound of strangers
	Unknown uint64 // nonces of no client here: it is elsewhere, of another kind, or too late
	Broken  uint64 // sessions ended for what a client sent, or did not send
	Opened  uint64 // files handed out
	// Refused counts the files that were not handed out, by the reason as session.x
	// names it, without the prefix and in lower case: "identity".
	Refused map[string]uint64
	Revoked uint64 // files taken back
}

// reasons are the names of session_why in Stats.Refused.
var reasons = [...]string{
	localio.SESSION_REFUSED:     "refused",
	localio.SESSION_IDENTITY:    "identity",
	localio.SESSION_NOT_TO_PASS: "not_to_pass",
	localio.SESSION_NO_FILE:     "no_file",
	localio.SESSION_CROWDED:     "crowded",
}

// Stats returns the counters.
func (s *Service) Stats() Stats {
	s.mu.Lock()
	strangers, sessions := len(s.strangers), len(s.bound)
	s.mu.Unlock()
	st := Stats{
		UUID: session.FormatUUID(s.o.UUID), Socket: s.l.Path(),
		Strangers: strangers, Sessions: sessions, Files: int(s.n.files.Load()),
		Bound: s.n.bound.Load(), Full: s.n.full.Load(), Crowded: s.n.crowded.Load(),
		Unknown: s.n.unknown.Load(), Broken: s.n.broken.Load(),
		Opened: s.n.opened.Load(), Revoked: s.n.revoked.Load(),
		Refused: make(map[string]uint64, len(reasons)),
	}
	for why, name := range reasons {
		if name != "" {
			st.Refused[name] = s.n.why[why].Load()
		}
	}
	return st
}
