package nfsserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/nfsserver/internal/acl"
	"github.com/nfsbox/nfsbox/nfsserver/internal/localio"
	"github.com/nfsbox/nfsbox/nfsserver/internal/mountd"
	"github.com/nfsbox/nfsbox/nfsserver/internal/nlm"
	"github.com/nfsbox/nfsbox/nfsserver/internal/peer"
	"github.com/nfsbox/nfsbox/nfsserver/internal/portmap"
	"github.com/nfsbox/nfsbox/nfsserver/internal/v3"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/oncrpc/replycache"
	"github.com/nfsbox/nfsbox/xdr"
)

// Options say what a Server serves and within which bounds. Exports is required;
// every other field may be left zero.
type Options struct {
	// Exports is what is served.
	Exports *export.Table
	// Log receives mounts, and errors of file systems for which the protocol has no
	// status. nil discards.
	Log *slog.Logger

	// Bounds; 0 is the default of package oncrpc, whose constants say what
	// happens at each bound.
	MaxConns        int   // connections at once
	MaxCallsPerConn int   // calls of one connection under way
	MaxRequestBytes int64 // memory of requests
	IdleTimeout     time.Duration
	// MaxReplyBytes bounds the memory of data that is being read or waits to
	// be sent, all connections together; 0 is DefaultMaxReplyBytes. At the
	// bound READ and READDIR wait, and answer JUKEBOX after two seconds.
	MaxReplyBytes int64

	// Replies remembers the replies of calls that must not be executed twice;
	// nil is a cache of the default size. A planned restart saves it and hands
	// it, loaded, to the next server.
	Replies oncrpc.Replies

	// Observe is called for every call that takes SlowOp or longer, if that is not 0,
	// and for those that Sample picks, if that is not nil. See oncrpc.ServerOptions.
	SlowOp  time.Duration
	Sample  func() bool
	Observe func(oncrpc.Served)

	// Locks serves NLM and the status monitor: locks on ranges of bytes, of file
	// systems that have them (vfs.Locker).
	Locks bool
	// LockStateDir records the clients that hold locks over a restart; it must exist.
	// "": after a restart no client is told of it.
	LockStateDir string
	// MaxClientLocks bounds the owners of locks of one client, each counted once for
	// each file: the file system may open a file for it. 0 is DefaultMaxClientLocks. At
	// the bound a lock is refused.
	MaxClientLocks int
	// Grace is how long after a start only locks from before it are granted again, if
	// there were any. Clients may take 30 s to notice a restart: with a shorter grace a lock
	// may go to another while its owner still relies on it. 0: there is none, and the first
	// to ask gets what somebody had before.
	Grace time.Duration
	// Hostname is what the server calls itself to clients that hold locks.
	Hostname string
	// Cookie is a random number. It distinguishes grants of locks from those before a
	// restart.
	Cookie uint64

	// User, if set, returns the user of a connection that may come from this host: nil
	// for one whose credentials are believed, oncrpc.UnknownUser for one that is not
	// known. Over UDP it cannot be asked, and callers on this host are not known. Each
	// user is a client of its own, with its own locks, replies and shares. See
	// export.Origin and oncrpc.UserAddr.
	User func(net.Conn) *uint32

	// LocalIO, if set, hands files to clients on this host, which read and write
	// them without the network. It is for Linux; elsewhere it is an error.
	LocalIO *LocalIO
}

// LocalIO says where clients on the same host find the server, and what they may
// have. UUID is required; every other field may be left zero.
type LocalIO struct {
	// Dir is the directory of the server's socket. It is made if its parent exists.
	// It must be where clients look for it, and writable only for its owner. Client
	// and server in containers of one host share it as a volume. "": /run/nfsbox for
	// root, $XDG_RUNTIME_DIR/nfsbox for others.
	Dir string
	// UUID identifies this run of the server: random bytes.
	UUID [16]byte
	// Trusted hands files also to processes that could do more by them on this
	// host than they may over the network, such as a squashed root that wants to
	// write. Rules still hold when a file is opened.
	Trusted bool
	// MaxFiles bounds the files that one client has at once (0: 1024, at most 16384),
	// and MaxSessions the clients (0: 256). At the bounds the network is used.
	MaxFiles, MaxSessions int
}

// DefaultMaxReplyBytes is Options.MaxReplyBytes if that is 0.
const DefaultMaxReplyBytes = v3.DefaultMaxBulk

// DefaultMaxClientLocks is Options.MaxClientLocks if that is 0.
const DefaultMaxClientLocks = nlm.DefaultMaxHoldings

// ErrClosed is returned by Serve once the server is shut down.
var ErrClosed = oncrpc.ErrServerClosed

// Server serves exports on any number of listeners. All methods may be called
// concurrently.
type Server struct {
	rpc     *oncrpc.Server
	udp     *oncrpc.Server    // all but NFS and its lists
	maps    [2]*oncrpc.Server // the port mapper alone, over TCP and UDP
	nfs     *v3.Service
	mounts  *mountd.Service
	ports   *portmap.Service
	locks   *nlm.Service     // nil: none
	local   *localio.Service // nil: none
	replies oncrpc.Replies
	buffers bufpool.Pool

	mu    sync.Mutex
	addrs []net.Addr // guarded by mu; where the programs are served
}

// New makes a server. It does nothing before Serve, except that LocalIO's socket exists
// until Shutdown or Close.
func New(o Options) (*Server, error) {
	if o.Exports == nil {
		return nil, errors.New("nfsserver: no exports")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Replies == nil {
		o.Replies = replycache.New(replycache.Options{})
	}
	s := &Server{replies: o.Replies}
	s.nfs = v3.New(v3.Options{Log: o.Log, Buffers: &s.buffers, MaxBulk: o.MaxReplyBytes})
	files := []oncrpc.Service{s.nfs.RPC(), acl.New(o.Log).RPC()}
	s.mounts = mountd.New(o.Exports, o.Log)
	beside := s.mounts.RPC()
	if o.Locks {
		var err error
		if s.locks, err = nlm.New(nlm.Options{
			Table: o.Exports, Log: o.Log, Grace: o.Grace, StateDir: o.LockStateDir, Hostname: o.Hostname, Cookie: o.Cookie,
			MaxHoldings: o.MaxClientLocks,
		}); err != nil {
			return nil, fmt.Errorf("nfsserver: locks: %w", err)
		}
		beside = append(beside, s.locks.RPC()...)
	}
	s.ports = portmap.New(append(programs(files), programs(beside)...)...)
	s.ports.OverUDP(programs(beside)...)
	mappers := s.ports.RPC()
	beside = append(beside, mappers...)
	hidden, err := s.listenLocally(&o)
	if err == nil {
		s.rpc, err = oncrpc.NewServer(slices.Concat(files, beside, hidden), asking(o.User, s.options(&o)))
	}
	if err == nil {
		s.udp, err = oncrpc.NewServer(overUDP(beside), asked(o.User, s.options(&o)))
	}
	if err == nil {
		s.maps[0], err = oncrpc.NewServer(mappers, asking(o.User, s.mapOptions(&o)))
	}
	if err == nil {
		s.maps[1], err = oncrpc.NewServer(overUDP(mappers), asked(o.User, s.mapOptions(&o)))
	}
	if err != nil {
		return nil, errors.Join(err, s.endLocally(), s.endLocks())
	}
	return s, nil
}

// listenLocally begins LOCALIO, if Options ask for it, and returns its program, which no
// port mapper lists.
func (s *Server) listenLocally(o *Options) ([]oncrpc.Service, error) {
	if o.LocalIO == nil {
		return nil, nil
	}
	var err error
	s.local, err = localio.New(localio.Options{
		Dir: o.LocalIO.Dir, UUID: o.LocalIO.UUID, Trusted: o.LocalIO.Trusted,
		MaxFiles: o.LocalIO.MaxFiles, MaxSessions: o.LocalIO.MaxSessions, Log: o.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("nfsserver: LOCALIO: %w", err)
	}
	return []oncrpc.Service{s.local.RPC()}, nil
}

// endLocally revokes the files of local clients, and ends their sessions.
func (s *Server) endLocally() error {
	if s.local == nil {
		return nil
	}
	return s.local.Close()
}

func programs(services []oncrpc.Service) []*xdr.Program {
	all := make([]*xdr.Program, len(services))
	for i := range services {
		all[i] = services[i].Program
	}
	return all
}

func (s *Server) options(o *Options) oncrpc.ServerOptions {
	return oncrpc.ServerOptions{
		MaxConns:        o.MaxConns,
		MaxRecord:       v3.MaxTransfer + recordRoom,
		MaxCallsPerConn: o.MaxCallsPerConn,
		MaxRequestBytes: o.MaxRequestBytes,
		IdleTimeout:     o.IdleTimeout,
		Replies:         s.replies,
		Slow:            o.SlowOp,
		Sample:          o.Sample,
		Observe:         o.Observe,
		Log:             o.Log,
		NewConn:         func(remote, _ net.Addr) (any, error) { return peer.NewConn(o.Exports, remote), nil },
		Admit:           func(state any) bool { return state.(*peer.Conn).Admitted() },
	}
}

const (
	// maxMapConns bounds the connections at the port mapper's own addresses. At the
	// bound a new one replaces the one that was idle longest.
	maxMapConns = 256
	// maxMapRequests bounds the memory of requests there. At the bound none is read.
	maxMapRequests = 1 << 20
)

// mapOptions are those of the port mapper's own addresses, where questions are short.
func (s *Server) mapOptions(o *Options) oncrpc.ServerOptions {
	m := s.options(o)
	m.MaxConns, m.MaxRecord, m.MaxRequestBytes = maxMapConns, recordRoom, maxMapRequests
	return m
}

// PeerOf returns remote, the far end of nc. If both ends may lie on this host, it adds the
// user that user returns for the connection: see [oncrpc.UserAddr] and [Options.User]. A
// nil user adds none.
func PeerOf(user func(net.Conn) *uint32, nc net.Conn, remote, local net.Addr) net.Addr {
	if user != nil && peer.Within(remote, local) {
		if uid := user(nc); uid != nil {
			return &oncrpc.UserAddr{Addr: remote, UID: *uid}
		}
	}
	return remote
}

// asking sets o to ask for the user of each new connection.
func asking(user func(net.Conn) *uint32, o oncrpc.ServerOptions) oncrpc.ServerOptions {
	if user != nil {
		o.Peer = func(nc net.Conn, remote, local net.Addr) net.Addr { return PeerOf(user, nc, remote, local) }
	}
	return o
}

// asked sets o to treat the user of datagrams from this host as unknown: when one is read,
// its sender's socket may already belong to another user.
func asked(user func(net.Conn) *uint32, o oncrpc.ServerOptions) oncrpc.ServerOptions {
	if user != nil {
		o.Peer = func(_ net.Conn, remote, local net.Addr) net.Addr {
			if peer.Within(remote, local) {
				return &oncrpc.UserAddr{Addr: remote, UID: oncrpc.UnknownUser}
			}
			return remote
		}
	}
	return o
}

// recordRoom is what a request may have beside the data of a WRITE: the head of
// the call, its credential, the handle. At the bound of a record the connection is
// closed.
const recordRoom = 64 << 10

// Serve answers connections to l until Shutdown or Close; it then closes l and returns
// [ErrClosed]. It may be called for several listeners.
func (s *Server) Serve(l net.Listener) error {
	s.begin(l.Addr())
	return s.rpc.Serve(l)
}

// ServePacket is Serve over UDP, for all programs but NFS and its access control
// lists, whose clients have TCP. Procedures whose reply is a list (MOUNT's DUMP and
// EXPORT, the port mapper's DUMP) are not served over UDP.
func (s *Server) ServePacket(pc net.PacketConn) error {
	s.begin(pc.LocalAddr())
	return s.udp.ServePacket(pc)
}

// ServePortmap is Serve for the port mapper alone, on its own port: 111.
func (s *Server) ServePortmap(l net.Listener) error {
	s.ports.Mapping(l.Addr())
	return s.maps[0].Serve(l)
}

// ServePortmapPacket is ServePortmap over UDP.
func (s *Server) ServePortmapPacket(pc net.PacketConn) error {
	s.ports.Mapping(pc.LocalAddr())
	return s.maps[1].ServePacket(pc)
}

// begin notes that the programs are served at a. At the first address it starts the lock
// manager.
func (s *Server) begin(a net.Addr) {
	s.ports.Listening(a)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addrs = append(s.addrs, a)
	if len(s.addrs) == 1 && s.locks != nil {
		s.locks.Start()
	}
}

// Shutdown ends the server without losing a reply. It takes files back from local
// clients, closes listeners, and finishes and answers calls under way. Clients have two
// seconds to close their connections. If ctx ends before, it closes the server and
// returns ctx's error. The exports' file systems stay open; they are the caller's.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.endLocally()
	for _, rpc := range [...]*oncrpc.Server{s.rpc, s.udp, s.maps[0], s.maps[1]} {
		e := rpc.Shutdown(ctx)
		if e != nil && e.Error() == fmt.Sprint(ctx.Err()) && errors.Is(err, ctx.Err()) {
			continue // another one has said so
		}
		err = errors.Join(err, e)
	}
	return errors.Join(err, s.endLocks())
}

// Close ends the server at once: calls under way are cancelled, and waited for.
func (s *Server) Close() error {
	return errors.Join(s.endLocally(), s.rpc.Close(), s.udp.Close(), s.maps[0].Close(), s.maps[1].Close(), s.endLocks())
}

func (s *Server) lockService() *nlm.Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locks
}

func (s *Server) endLocks() error {
	s.mu.Lock()
	locks := s.locks
	s.locks = nil
	s.mu.Unlock()
	if locks == nil {
		return nil
	}
	return locks.Close()
}

// Registered is what Register has entered with the registry of this host.
type Registered struct{ r *portmap.Registration }

// Register enters the server's programs with the rpcbind of this host, at the
// addresses at which they are served by then. Entries of other servers stay; Left
// returns those.
func (s *Server) Register(ctx context.Context) (*Registered, error) {
	tcp, udp := s.ports.Programs()
	var entries []portmap.Entry
	s.mu.Lock()
	for _, a := range s.addrs {
		programs := tcp
		if a.Network() == "udp" {
			programs = udp
		}
		for _, p := range programs {
			entries = append(entries, portmap.Entry{Program: p, Addr: a})
		}
	}
	s.mu.Unlock()
	r, err := portmap.Register(ctx, portmap.DialRegistry, entries...)
	if err != nil {
		return nil, fmt.Errorf("nfsserver: rpcbind: %w", err)
	}
	return &Registered{r}, nil
}

// Left describes the programs that other servers had entered before.
func (r *Registered) Left() []string { return r.r.Left }

// Close removes what Register has entered.
func (r *Registered) Close(ctx context.Context) error { return r.r.Close(ctx) }
