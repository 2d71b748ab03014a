//go:build linux

package localfs

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/base/syncfs"
	"github.com/nfsbox/nfsbox/internal/server/iogate"
	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/handlemap"
	"github.com/nfsbox/nfsbox/internal/server/localfs/identity"
	"github.com/nfsbox/nfsbox/internal/server/localfs/inotify"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/internal/server/localfs/mounts"
	"github.com/nfsbox/nfsbox/internal/server/localfs/ofd"
	"github.com/nfsbox/nfsbox/vfs"
)

// FS is a directory of this host, as one caller sees it.
type FS struct {
	*host
	who *identity.Identity
}

// host is what all views of a tree share.
type host struct {
	o        Options
	sys      Sys
	handles  handler
	mapped   *handlemap.Map // nil: the kernel's handles
	mode     Mode
	copiesUp bool // see handlemap.Identifier
	disk     Sys  // sys, but for its syncs not gated: see gatedSys
	fds      *fdcache.Cache
	creds    *identity.Switcher
	flights  syncGroups
	whole    *syncfs.Whole // nil: each object is synced by itself
	locks    *Locks        // Options.Locks, or its own
	flocks   ofd.Table
	bufs     bufpool.Pool
	listers  sync.Pool // of *lister
	verf     atomic.Uint64
	closed   atomic.Bool
	excess   [iogate.Classes]atomic.Int32 // calls inside the lanes beyond their places
	reserve  reserve
	watches  inotify.Watches
	sweeper  fdcache.Sweeper
	cleaning atomic.Bool // what is dirty and idle is being synced
	counts   counts

	rootFD        int // O_PATH; never closed before the end
	wholeFD       int // of the root, for whole; -1: none
	root          vfs.Handle
	rootPath      string // when it was opened
	rootIno       uint64
	rootDev       uint64
	rootMount     uint64
	fsid          uint64        // the same after a restart, on most file systems
	attrsInMemory bool          // attributes of what is open come without waiting for a disk
	seal          mounts.Double // of the root's mount

	hidden hidden
	mounts *mounts.Table // nil: not crossed
}

// As implements vfs.FS.
func (v *FS) As(c *vfs.Caller) vfs.FS {
	if c.Equal(v.who.Caller) {
		return v
	}
	return &FS{host: v.host, who: v.creds.Of(c)}
}

// Squashed reports whether callers other than the process' own user cannot be
// acted for: without root everything is done, and owned, by that user, and what
// others may is judged by the mode bits.
func (h *host) Squashed() bool { return !h.creds.Able() }

// HandleMode is HandlesKernel or HandlesMap: what New has chosen.
func (h *host) HandleMode() Mode { return h.mode }

// mountKey is the key of the mount that the kernel calls id: 0 is the root's own; ok
// is false of what is not to be served.
func (h *host) mountKey(id uint64) (key uint64, ok bool) {
	if id == h.rootMount {
		return 0, true
	}
	return h.mounts.Key(id)
}

// report tells the operator, and names the tree.
func (h *host) report(err error) { h.o.Report(fmt.Errorf("localfs: %s: %w", h.rootPath, err)) }

// as runs f, which looks up or changes names, as the caller.
func (v *FS) as(f func() error) error {
	if !v.who.Switched {
		return f()
	}
	return v.creds.As(v.who, identity.Whole, f)
}

// hidden remembers which mount points were reported.
type hidden struct {
	mu   sync.Mutex
	seen map[uint64]bool
}

// hide reports the mount point name, once.
func (h *host) hide(name string, st *linux.Stat) {
	h.hidden.mu.Lock()
	defer h.hidden.mu.Unlock()
	id := st.Mnt_id
	if h.hidden.seen[id] || len(h.hidden.seen) >= maxReported {
		return
	}
	if h.hidden.seen == nil {
		h.hidden.seen = make(map[uint64]bool)
	}
	h.hidden.seen[id] = true
	h.report(fmt.Errorf("%q is on another file system, and hidden: %w", name, vfs.ErrXDev))
}

// handler makes handles and finds what they name. There are two: the kernel's own handles
// and the map, whose methods have full comments in package handlemap. All methods may be
// called concurrently. dir is always a directory, pinned by the caller.
type handler interface {
	// Root is the handle of the tree's top directory.
	Root() (vfs.Handle, error)
	// Open returns an O_PATH descriptor of what x names, and fills st. A directory is not
	// checked to lie in the tree.
	Open(x vfs.Handle, st *linux.Stat) (fd int, err error)
	// Bind gives the object that is called name in dir, which st describes, its handle. fd
	// is the object, or -1. The handle must not leave before WaitStable.
	Bind(dir *fdcache.Desc, name []byte, fd int, st *linux.Stat) (vfs.Handle, handlemap.LSN, error)
	// Find is Bind for an object that nobody may ever ask for. name may be "..".
	Find(dir *fdcache.Desc, name string, fd int, st *linux.Stat) (x vfs.Handle, ok bool)

	// Expect says that x is about to be called name in dir as well; fresh is false if it
	// was thought to be called that already.
	Expect(dir *fdcache.Desc, name string, x vfs.Handle) (at handlemap.LSN, fresh bool, err error)
	// Unbind says that x is no longer called name in dir, and, if gone, nowhere else.
	Unbind(dir *fdcache.Desc, name string, x vfs.Handle, gone bool)
	// Touched says that o, which the caller has pinned, was opened to be written, or
	// changed: it may look like another object now.
	Touched(o *fdcache.Desc) (handlemap.LSN, error)
	// Lost says that x has no name left, and can get none.
	Lost(x vfs.Handle)
	// WhileMoving runs f, in which an object leaves a name for another that was expected.
	WhileMoving(f func() error) error

	// WaitStable waits until what was noted up to then survives a crash.
	WaitStable(handlemap.LSN) error
	Close() error
}

// reserve says whether the disk has room enough that no write comes near the blocks kept
// for root.
type reserve struct {
	writes atomic.Int32 // that may be made before the next look
	near   atomic.Bool
}

// Snapshot returns the counters. It costs a few locks, each held for an instant.
func (h *host) Snapshot() Snapshot {
	n := &h.counts
	c := h.fds.Stats()
	return Snapshot{
		Open: c.Open, MaxOpen: h.fds.Max, Dirty: c.Dirty, Hits: c.Hits, Misses: c.Misses, Evicted: c.Evicted, Idle: c.Idled,
		Syncs: n.syncs.Load(), Shared: n.shared.Load(), Cleaned: n.cleaned.Load(), Verifiers: n.verifiers.Load(),
		NowaitHits: n.nowaitHits.Load(), NowaitMisses: n.nowaitMisses.Load(), AsCaller: n.asCaller.Load(),
		Busy: n.busy.Load(),
	}
}
