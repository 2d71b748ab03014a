package export

import (
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// MaxExports bounds the exports of a table, and [MaxRules] the rules of all of them
// together. So the reply to MOUNT's EXPORT fits one record. More is an error of New
// and Replace.
const MaxExports = 4096

// Export is one file system under one path.
type Export struct {
	// Path is what clients mount, absolute and clean: "/", "/home".
	Path string
	// FS is what they get. Its root is the export's. It must be comparable, as
	// pointers are: so a reload sees whether the file system is the same.
	FS vfs.FS
	// ID is the number of the export. It is part of every handle, and must be the
	// same after a restart. 0 derives it from Path.
	ID uint32
	// Tree identifies the tree among all that are exported under the same ID at one
	// time or another: the same bytes after a restart, and others for another root.
	// Handles of another tree are then vfs.ErrStale, even if FS would accept them.
	// Empty: FS alone decides.
	Tree []byte
	// Verbatim hands out the file system's own handles, without a seal, up to 64 bytes. It is for a file
	// system that proves its handles itself and whose handles leave no room for a seal, such as another server's. The
	// export must be the only one of its table, since no handle says which it is of.
	Verbatim bool
	// ReadOnly refuses every change with vfs.ErrROFS, whatever Clients say.
	ReadOnly bool
	// NoHostFiles keeps every read and write with the server: View.OpenHost gives no
	// file of this export to another process, whatever its user. It is for exports
	// that demand TLS or Kerberos, which a descriptor goes around, and for those
	// where all access is to be counted, limited or logged.
	NoHostFiles bool
	// Clients are the rules of the clients that may use the export. The first
	// rule that matches a client is its rule; a client that none matches gets
	// vfs.ErrAccess. Without rules every client may use it, by the zero Rule.
	Clients []Rule
	// Async reports every change as stable without making it so: writes are answered
	// as FileSync, Commit and changes of names as done, and nothing is synced.
	// DANGEROUS: a crash of the host loses what clients believe to be safe, and
	// errors of the disk are not reported. It is async of exports(5).
	Async bool
}

// Options are what a table needs beside its exports. Every field but Key may be left
// zero.
type Options struct {
	// Key seals the handles.
	Key Key
	// Resolver finds the names of clients and the addresses of names, if rules
	// ask for names. nil: net.DefaultResolver.
	Resolver Resolver
	// Groups returns all groups of a user of this host, the primary one first. It
	// is asked for rules with ManyGroups, and where Origin.User is known. A user who
	// does not exist has none, without an error. nil: HostGroups.
	Groups func(ctx context.Context, uid uint32) ([]uint32, error)
	// Report receives the errors of both; callers see vfs.ErrBusy at most. nil
	// discards them.
	Report func(error)
	// Refused is told of each call that the rules refuse, before the caller is answered.
	// It may be called concurrently, and as often as strangers like. nil: nobody is told.
	Refused func(Refusal)
	// Now is the clock. nil: time.Now.
	Now func() time.Time
}

// Table is the exports of a server. All methods may be called concurrently.
type Table struct {
	key     Key
	now     func() time.Time
	refused func(Refusal) // nil: nobody is told
	clients clients

	// state is what is exported now. It is replaced as a whole, never changed.
	state atomic.Pointer[state]
	views atomic.Uint32 // views made so far: spreads them over the shards of users

	mu    sync.Mutex
	users map[vfs.FS]*users // guarded by mu; of all file systems that are exported or still in use
}

// NewTable is New with no options but the key.
func NewTable(key Key, exports ...Export) (*Table, error) {
	return New(Options{Key: key}, exports...)
}

// New checks the exports and returns a table of them.
func New(o Options, exports ...Export) (*Table, error) {
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Groups == nil {
		o.Groups = HostGroups
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	t := &Table{key: o.Key, now: o.Now, refused: o.Refused, users: make(map[vfs.FS]*users)}
	t.clients.init(&o)
	if err := t.Replace(exports...); err != nil {
		return nil, err
	}
	return t, nil
}

// Exports returns the exports in the order given. The slice is the table's.
func (t *Table) Exports() []Export { return t.state.Load().exports }

// maxExportPath bounds an export's path: MNTPATHLEN of RFC 1813, appendix I.
const maxExportPath = 1024

// state is what a table exports from one Replace to the next.
type state struct {
	exports []Export
	entries []entry // of exports, in their order
	byID    map[uint32]*entry
	byPath  map[string]*entry
	held    held
}

// entry is an export with what is worked out from it once.
type entry struct {
	*Export
	index int
	rules []rule
	users *users
	// verf is the write verifier of an export that is async. It differs from the
	// file system's own, so clients write again what was unstable before a reload
	// made the export async.
	verf vfs.Verifier
	key  Key // of its handles
}

// newState checks the exports and works out what calls need of them. Replace fills in
// users of the entries.
func (t *Table) newState(exports []Export) (*state, error) {
	if len(exports) == 0 || len(exports) > MaxExports {
		return nil, fmt.Errorf("export: %d exports; a table has 1 to %d", len(exports), MaxExports)
	}
	// The caller's slice stays the caller's.
	exports = append([]Export(nil), exports...)
	s := &state{exports: exports, entries: make([]entry, len(exports)), byID: make(map[uint32]*entry, len(exports)), byPath: make(map[string]*entry, len(exports))}
	rules := 0
	for i := range s.exports {
		e := &s.entries[i]
		e.Export, e.index = &s.exports[i], i
		if err := e.check(); err != nil {
			return nil, err
		}
		if e.Verbatim && len(exports) > 1 {
			return nil, fmt.Errorf("export: %q has handles without a seal (verbatim), and then no other export can be beside it", e.Path)
		}
		if s.byPath[e.Path] != nil {
			return nil, fmt.Errorf("export: %q is there twice", e.Path)
		}
		s.byPath[e.Path] = e
		if e.ID == 0 {
			e.ID = idOf(e.Path)
		}
		if o := s.byID[e.ID]; o != nil {
			return nil, fmt.Errorf("export: %q and %q have the same number %d", o.Path, e.Path, e.ID)
		}
		s.byID[e.ID] = e
		if rules += len(e.Clients); rules > MaxRules {
			return nil, fmt.Errorf("export: more than %d rules for clients", MaxRules)
		}
		var err error
		if e.rules, err = parseRules(e.Clients); err != nil {
			return nil, fmt.Errorf("export: %q: %w", e.Path, err)
		}
		e.verf = t.asyncVerifier(e.ID)
		if e.key = t.key; len(e.Tree) > 0 {
			e.key = t.key.of(e.Tree)
		}
		s.held.add(e.FS)
	}
	return s, nil
}

func (e *entry) check() error {
	if !strings.HasPrefix(e.Path, "/") || path.Clean(e.Path) != e.Path || strings.ContainsRune(e.Path, 0) ||
		len(e.Path) > maxExportPath {
		return fmt.Errorf("export: %.100q: the path must be absolute, without \".\", \"..\" and double slashes, and at most %d bytes",
			e.Path, maxExportPath)
	}
	return checkFS(e.Path, e.FS)
}

// idOf derives an export's number from its path.
func idOf(p string) uint32 {
	h := fnv.New32a()
	// A hash.Hash never fails to write.
	_, _ = h.Write([]byte(p))
	return max(h.Sum32(), 1)
}
