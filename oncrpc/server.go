package oncrpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/xdr"
)

// Service is one version of a program and what serves it: Handlers[i] serves
// Program.Procs[i]. A procedure with a nil handler, or beyond the end of
// Handlers, is answered PROC_UNAVAIL; procedure 0 always answers.
//
// Once[i] says that a second execution of Program.Procs[i] could do harm: with a
// [Replies] it is executed once, and a retransmission gets the same reply.
type Service struct {
	Program  *xdr.Program
	Handlers []Handler
	Once     []bool // may be shorter than Handlers
}

// Handler serves one call. It may block without holding up others, replies at
// most once, and returns nil if it has, or if the answer is void. Otherwise it
// returns an error: what says that the arguments were no good (see
// [ErrGarbageArgs]) is answered GARBAGE_ARGS, an [*AuthError] is a denial,
// [ErrDrop] is no reply at all, and anything else, or a panic, is SYSTEM_ERR and
// goes to the log. ctx ends when the server is closed, or the connection is lost;
// but for the procedures that a [Replies] covers the connection does not
// matter, and what has begun is finished.
type Handler func(ctx context.Context, c *Call) error

// ServerOptions bounds a server. Zero values are the defaults of the constants
// that are named like the fields.
type ServerOptions struct {
	MaxConns        int   // connections at once; a client alone has half of them
	MaxRecord       int   // bytes of a request
	MaxCallsPerConn int   // calls of one connection under way
	MaxCalls        int   // calls of all connections under way, beyond one of each
	MaxRequestBytes int64 // memory of the requests of all connections; enough for two of MaxRecord at least
	IdleTimeout     time.Duration
	HeadTimeout     time.Duration
	WriteTimeout    time.Duration

	// Peer, if set, answers the far end of each connection, which Call.Remote then
	// is, for a server that knows more of it than its address: see UserAddr. It may not read
	// or write, and connections wait for it to be accepted. Of a datagram nc is nil.
	Peer func(nc net.Conn, remote, local net.Addr) net.Addr
	// NewConn, if set, is called for each connection before it is read; what
	// it returns is Call.State. An error closes the connection.
	NewConn func(remote, local net.Addr) (state any, err error)
	// Admit, if set, says of what NewConn has returned whether anything may be kept
	// for that client: a reply to be sent again, the memory of a large request. For
	// others the server has a small share (see strangerBytes), and keeps nothing. It
	// is asked again and again, and must wait for nothing. nil admits everybody.
	Admit func(state any) bool
	// EndConn, if set, is called when a connection that NewConn had admitted
	// is over and its last handler has returned.
	EndConn func(state any)
	// Secure, if set, makes the server answer an AUTH_TLS probe with STARTTLS
	// (RFC 9289, section 4.1) and is then called to turn the connection into
	// one that is protected. Without it such probes are denied, and clients go
	// on in the clear if they may.
	Secure func(net.Conn) (net.Conn, error)
	// Replies remembers the replies of the procedures that are Once. nil: a
	// retransmission is executed again. Servers may share one.
	Replies Replies
	// Observe, if set, is told of each call that took Slow or longer, and of those
	// that Sample picks, from the goroutine that served it. The reply leaves when
	// it has returned: it must not wait. After the server's end it is not called
	// any more.
	Observe func(Served)
	// Slow: 0 is for no call.
	Slow time.Duration
	// Sample, if set, is asked once for each call that Observe could be told of,
	// whether to, by many goroutines at once. It must be fast, and allocate
	// nothing.
	Sample func() bool
	// Log receives what no client can be told: panics of handlers, their
	// errors that became SYSTEM_ERR, failing listeners. nil discards.
	Log *slog.Logger

	nagle  bool          // leave TCP_NODELAY off, to prove that it is not what saves us
	linger time.Duration // lingerTime
}

func (o *ServerOptions) defaults() {
	o.MaxConns = cmp.Or(o.MaxConns, DefaultMaxConns)
	o.MaxRecord = cmp.Or(o.MaxRecord, DefaultMaxRecord)
	o.MaxCallsPerConn = cmp.Or(o.MaxCallsPerConn, DefaultMaxCallsPerConn)
	o.MaxCalls = cmp.Or(o.MaxCalls, DefaultMaxCalls)
	o.MaxRequestBytes = cmp.Or(o.MaxRequestBytes, DefaultMaxRequestBytes)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, DefaultIdleTimeout)
	o.HeadTimeout = cmp.Or(o.HeadTimeout, DefaultHeadTimeout)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, DefaultWriteTimeout)
	o.linger = cmp.Or(o.linger, lingerTime)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// Server serves programs on any number of listeners. All methods may be called
// concurrently.
type Server struct {
	o        ServerOptions
	services []binding
	pool     bufpool.Pool
	budget   *budget
	aside    *budget   // for those who are not admitted
	calls    sync.Pool // of *Call
	epoch    time.Time // when its clock began
	ctx      context.Context
	stop     context.CancelFunc
	wg       sync.WaitGroup // a count for each connection; added to under mu, before ending
	stats    serverCounters
	underWay atomic.Int64 // calls of connections, read and not yet answered

	mu        sync.Mutex
	ending    bool
	listeners map[*net.Listener]struct{} // some types of listeners cannot be keys
	conns     map[*serverConn]struct{}
	shares    map[string]int // conns by ShareOf
	strangers int            // how many of conns were not admitted when they came
	packets   map[*packetConn]struct{}
}

// NewServer returns a server of services. It is an error if two of them are the
// same version of the same program, or if one has more handlers than procedures.
func NewServer(services []Service, o ServerOptions) (*Server, error) {
	o.defaults()
	for i, s := range services {
		if s.Program == nil {
			return nil, fmt.Errorf("oncrpc: service %d has no program", i)
		}
		if n := max(len(s.Handlers), len(s.Once)); n > len(s.Program.Procs) {
			return nil, fmt.Errorf("oncrpc: %s has %d procedures and %d handlers", s.Program.Name, len(s.Program.Procs), n)
		}
		for _, t := range services[:i] {
			if s.Program.Number == t.Program.Number && s.Program.Version == t.Program.Version {
				return nil, fmt.Errorf("oncrpc: program %d version %d is there twice", s.Program.Number, s.Program.Version)
			}
		}
	}
	s := &Server{
		o:         o,
		epoch:     time.Now(),
		budget:    newBudget(o.MaxRequestBytes, o.MaxRecord),
		aside:     newBudget(strangerBytes, o.MaxRecord),
		shares:    make(map[string]int),
		listeners: make(map[*net.Listener]struct{}),
		conns:     make(map[*serverConn]struct{}),
		packets:   make(map[*packetConn]struct{}),
	}
	s.budget.epoch, s.aside.epoch = s.epoch, s.epoch
	for _, svc := range services {
		s.services = append(s.services, binding{svc, make([]meter, len(svc.Program.Procs))})
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// admits reports whether anything may be kept for a client.
func (s *Server) admits(state any) bool { return s.o.Admit == nil || s.o.Admit(state) }

// Serve accepts connections on l until Shutdown or Close, which close l; it then
// returns ErrServerClosed. A listener that fails for good ends it, too.
func (s *Server) Serve(l net.Listener) error {
	if !s.track(&l) {
		return errors.Join(ErrServerClosed, l.Close())
	}
	defer s.untrack(&l)
	pause := time.Duration(0)
	for {
		nc, err := l.Accept()
		if err == nil {
			pause = 0
			s.accept(nc)
			continue
		}
		if s.closing() {
			return ErrServerClosed
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("oncrpc: listener %v: %w", l.Addr(), err)
		}
		pause = min(max(2*pause, acceptPauseMin), acceptPauseMax)
		s.o.Log.Error("accepting a connection failed, trying again", "listener", l.Addr(), "err", err, "pause", pause)
		if !s.sleep(pause) {
			return ErrServerClosed
		}
	}
}

func (s *Server) track(l *net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ending {
		s.listeners[l] = struct{}{}
	}
	return !s.ending
}

func (s *Server) untrack(l *net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

func (s *Server) closing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending
}

// sleep answers false if the server was closed meanwhile.
func (s *Server) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return !s.closing()
	case <-s.ctx.Done():
		return false
	}
}

// peer is the far end of a connection, or of a datagram if nc is nil.
func (s *Server) peer(nc net.Conn, remote, local net.Addr) net.Addr {
	if s.o.Peer == nil {
		return remote
	}
	return s.o.Peer(nc, remote, local)
}

// accept begins to serve nc, if there is room or room can be made.
func (s *Server) accept(nc net.Conn) {
	s.stats.accepted.Add(1)
	remote := s.peer(nc, nc.RemoteAddr(), nc.LocalAddr())
	s.mu.Lock()
	defer s.mu.Unlock()
	share := ShareOf(remote)
	if s.ending || !s.roomFor(share) {
		s.stats.refused.Add(1)
		_ = nc.Close() // nothing was promised
		return
	}
	sc := newServerConn(s, nc, remote, share)
	s.conns[sc] = struct{}{}
	s.shares[share]++
	s.wg.Add(1)
	go sc.serve()
}

// Shutdown ends the server without losing a reply: it closes the listeners,
// reads no more calls, lets those under way finish, sends their replies and
// waits, for at most two seconds, until the clients have closed. When ctx ends
// before, it closes everything and returns ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.end((*serverConn).drain)
	done := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		s.stop()
		return err
	case <-ctx.Done():
		err = errors.Join(err, ctx.Err(), s.Close())
		<-done
		return err
	}
}

// Close ends the server at once: handlers' contexts end, replies not yet sent
// are lost. It waits for the handlers to return.
func (s *Server) Close() error {
	s.stop()
	err := s.end(func(sc *serverConn) { sc.fail(ErrServerClosed) })
	s.wg.Wait()
	return err
}

// end closes the listeners, and each connection by how.
func (s *Server) end(how func(*serverConn)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
	var errs []error
	for l := range s.listeners {
		errs = append(errs, (*l).Close())
	}
	clear(s.listeners)
	for sc := range s.conns {
		how(sc)
	}
	for p := range s.packets {
		p.halt()
	}
	return errors.Join(errs...)
}

// binding is a service at work.
type binding struct {
	Service
	meters []meter // by procedure
}

// find returns the service and the index of the procedure that a call asks for,
// or what it must be answered.
func (s *Server) find(prog, vers, proc uint32) (*binding, int, error) {
	var low, high uint32
	known := false
	for i := range s.services {
		p := s.services[i].Program
		if p.Number != prog {
			continue
		}
		if p.Version == vers {
			j := procIndex(p, proc)
			if j < 0 && proc != 0 {
				return nil, 0, &AcceptError{Stat: ProcUnavail}
			}
			return &s.services[i], j, nil
		}
		if !known {
			low, high, known = p.Version, p.Version, true
		}
		low, high = min(low, p.Version), max(high, p.Version)
	}
	if known {
		return nil, 0, &AcceptError{Stat: ProgMismatch, Low: low, High: high}
	}
	return nil, 0, &AcceptError{Stat: ProgUnavail}
}

// procIndex returns the index of procedure number in p, or -1.
func procIndex(p *xdr.Program, number uint32) int {
	if int64(number) < int64(len(p.Procs)) && p.Procs[number].Number == number {
		return int(number)
	}
	for i := range p.Procs {
		if p.Procs[i].Number == number {
			return i
		}
	}
	return -1
}
