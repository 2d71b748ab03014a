package localfs

import "github.com/nfsbox/nfsbox/internal/server/localfs/handlemap"

// The bounds of this package, and what happens at each.
const (
	// MaxIO is the most that one ReadAt or WriteAt moves, in bytes. The rest of
	// a longer buffer is left for the next call, as vfs.File allows.
	MaxIO = 1 << 20

	// DefaultMaxOpen is the default of Options.MaxOpen.
	DefaultMaxOpen = 1024

	// dirtyShare is the part of the descriptors, one in so many, that may be
	// dirty at a time. A write that would make it more syncs the one first that
	// has been dirty for longest. With lockShare it leaves a quarter to all others.
	dirtyShare = 4
	// maxTidy is how many it syncs at most. Beyond, others make descriptors dirty
	// as fast; the bound is then exceeded by as many as are written to at once.
	maxTidy = 4

	// lockShare is the part of the descriptors, one in so many, that may be descriptions
	// of owners of locks; one more lock is vfs.ErrBusy. A client that locks all that it
	// finds must not leave others without descriptors.
	lockShare = 2

	// maxDepth bounds how far below the root an object can be. Deeper ones are
	// ErrStale. A path of PATH_MAX bytes has at most half as many parts.
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
