package nlm

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/vfs"
)

// Options say how to reach a lock manager, and as whom. Connect, Auth and Rand are required.
type Options struct {
	// Connect finds the server's lock manager, when the first lock is taken, and again
	// after a failure. dialed is to be called whenever the client that it returns has
	// made a further connection. The FS closes the client.
	Connect func(ctx context.Context, dialed func()) (*oncrpc.Client, error)
	// Auth is the credential of a caller; nil is the view that New was given.
	Auth   func(*vfs.Caller) (oncrpc.Auth, error)
	Server string // its name, for messages
	// Host is the name of this host, caller_name on the wire. Bytes beyond
	// nlm4.LM_MAXSTRLEN are cut.
	Host string
	Rand func(p []byte)
	Log  *slog.Logger // nil: nothing is logged
}

// FS is one caller's view. What it has no method for passes through. It has the powers of the FS
// below, is a [vfs.Locker] in place of it, and a [vfs.Closer].
type FS struct {
	vfs.FS // below
	s      *shared
	caller *vfs.Caller // nil: that of New
}

var (
	_ vfs.Locker    = (*FS)(nil)
	_ vfs.Closer    = (*FS)(nil)
	_ vfs.Unwrapper = (*FS)(nil)
	_ vfs.Passer    = (*FS)(nil)
)

// shared is what the views have in common.
type shared struct {
	o     Options
	oh    [ohRandom]byte // begins the handles of all owners
	svid  uint32         // where their numbers begin
	began time.Time

	life context.Context // of operations
	stop context.CancelFunc
	wg   sync.WaitGroup // operations and the keeper; added to under mu, before closed

	link link
	n    counters

	held   atomic.Int64  // entries with locks
	epoch  atomic.Uint64 // counts the suspicions that the server has restarted
	grace  atomic.Uint64 // the epoch, and one, that began with its grace
	nudge  chan struct{} // wakes the keeper
	fences fences

	mu      sync.Mutex // guards what follows, and what says so in entry
	closed  bool
	keeping bool // the keeper runs
	entries map[key]*entry
	owners  map[vfs.Owner]*owner
	numbers map[int32]*owner // the same, by svid
	serial  uint64           // of the owner that came last
	locks   int              // ranges that are held
	untold  int              // entries whose owner has to be told of a loss
	pending int              // operations under way
	users   map[int64]*user  // that have owners, by number
	proof   proof
}

// New returns inner with locks, as the view that inner is. It makes no call.
func New(inner vfs.FS, o Options) *FS {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Host = o.Host[:min(len(o.Host), nlm4.LM_MAXSTRLEN)]
	s := &shared{o: o, began: time.Now(), nudge: make(chan struct{}, 1), entries: make(map[key]*entry),
		owners: make(map[vfs.Owner]*owner), numbers: make(map[int32]*owner), users: make(map[int64]*user)}
	s.link.gate = make(chan struct{}, 1)
	s.life, s.stop = context.WithCancel(context.Background())
	s.nameOwners()
	return &FS{FS: inner, s: s}
}

// Unwrap returns the FS below.
func (f *FS) Unwrap() any { return f.FS }

// Asked implements vfs.Passer.
func (f *FS) Asked() vfs.FS { return vfs.Asked(f.FS) }

// As returns the view of another caller, with the same locks.
func (f *FS) As(c *vfs.Caller) vfs.FS {
	if c != nil {
		own := *c
		own.Groups = slices.Clone(c.Groups)
		c = &own
	}
	return &FS{FS: f.FS.As(c), s: f.s, caller: c}
}

// Close unlocks what is held, for closeTime at most, ends all that goes on in the background,
// and closes the FS below.
func (f *FS) Close() error { return errors.Join(f.s.close(), vfs.CloseFS(f.FS)) }
