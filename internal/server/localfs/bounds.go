package localfs

import "github.com/nfsbox/nfsbox/internal/server/localfs/handlemap"

// The bounds of this package, and what happens at each.
const (
	// MaxIO is the most that one ReadAt or WriteAt moves, in bytes. The rest of
	// a longer buffer is left for the next call, as vfs.File allows.
	MaxIO = 1 << 20

	// DefaultMaxOpen is the default of Options.MaxOpen.
	DefaultMaxOpen = 1024

	// dirtyShare: at most one in dirtyShare descriptors is dirty. At the bound a write
	// first syncs the descriptor that has been dirty for longest. What lockShare and
	// dirtyShare leave, a quarter, is for all other uses.
	dirtyShare = 4
	// maxTidy is how many descriptors one write syncs at most. At the bound other writes
	// make descriptors dirty as fast. dirtyShare is then exceeded by as many files as are
	// written to at once.
	maxTidy = 4

	// leastWhole is how many calls want something synced at once before they share a sync of
	// the whole file system. Fewer are served sooner by a sync each.
	leastWhole = 8

	// lockShare: at most one in lockShare descriptors belongs to an owner of locks. At the
	// bound one more lock is vfs.ErrBusy: a client that locks all that it finds must not
	// leave others without descriptors.
	lockShare = 2

	// maxDepth bounds how far below the root an object can be. A deeper one is
	// ErrStale. A path of PATH_MAX bytes has at most half of PATH_MAX parts.
	maxDepth = handlemap.MaxDepth

	// lockStripes is the number of locks that share all objects between them.
	// Two objects of one stripe wait for each other; nothing else happens.
	lockStripes = 1024

	// direntBuffer is the size of the buffer that getdents64(2) fills, in bytes:
	// all the memory that a listing takes, beside one batch of entries.
	direntBuffer = 32 << 10

	// mapBatch is the most entries of a listing whose handles wait for the disk
	// together.
	mapBatch = 64

	// maxReported bounds how many hidden mount points are reported, each once.
	maxReported = 64
)
