package dir

import (
	"context"

	"github.com/nfsbox/nfsbox/internal/server/object/layout"
)

// The bounds of a store.
const (
	// DefaultMaxSize bounds an object, in bytes, if Options do not say. It is that of
	// S3, so that a store can be moved there. A larger object is object.ErrTooLarge.
	DefaultMaxSize = 5 << 40

	// DefaultParallel is how many calls may block on the disk at once if there is
	// no Gate. At the bound a call waits.
	DefaultParallel = 32

	// MaxSweep is how many leftovers one Sweep removes at most.
	MaxSweep = 10_000

	// chunk is how many bytes are read, hashed and written at a time, and what a
	// Put holds in memory. An object that fits one is read in one piece. Most small
	// files do, and a system call costs little beside the checksum of so many bytes.
	chunk = 64 << 10

	// maxFolders bounds the directories that are kept open. At the bound the one
	// not used for longest is closed; those in use may be more.
	maxFolders = 512

	// listBatch is how many names are read, or looked at, with one place at the
	// gate.
	listBatch = 256
)

// Class is what kind of work a call asks a place for.
type Class uint8

// The classes, in the order of those of the server's gate.
const (
	Meta Class = iota // open, link, unlink, look at names
	Read
	Write
	Sync
)

// Gate bounds how many calls may block on the disk at once. Every call that may block is
// made between Enter and Leave, by the goroutine that needs it. No place is held while a
// call waits for its caller's reader, or for another place.
type Gate interface {
	// Enter waits for a place, at most until ctx ends. An error other than ctx's
	// becomes an object.ErrBusy.
	Enter(ctx context.Context, c Class) error
	Leave(c Class)
}

// Options are the options of Open. The zero value opens an existing store.
type Options struct {
	// Create makes a store of a directory that is empty. One that is a store
	// already is opened as it is.
	Create bool
	// Fanout is that of a new store's layout, 1 to layout.MaxFanout; 0 is
	// layout.DefaultFanout. A store that exists keeps its own.
	Fanout int
	// ReadOnly opens a store that another process may have open to write. Nothing is
	// locked, synced or written: see "A reader beside the writer" in the package's
	// documentation.
	ReadOnly bool
	// Alone keeps readers out, and fails with [object.ErrBusy] while there are any: for
	// one that removes what they may be reading.
	Alone bool
	// NoSync leaves all syncs out. A crash of the machine may then lose objects that
	// were stored, or damage them, which a read of the whole object detects.
	NoSync bool
	// MaxSize bounds an object, in bytes; 0 is DefaultMaxSize.
	MaxSize int64
	// Gate is nil for one of the store's own with DefaultParallel places.
	Gate Gate
	// Sys is nil for the operating system.
	Sys Sys
	// Holder says who opens the store to write: another process that wants it is told.
	// The zero value is layout.Self.
	Holder layout.Holder
	// Rand fills its argument with random bytes; nil is crypto/rand.Read.
	Rand func([]byte)
}

// Snapshot are the counters of a store since it was opened.
type Snapshot struct {
	Puts        uint64 // that have stored something
	PutBytes    uint64
	Gets        uint64
	Deletes     uint64 // that have removed something
	Syncs       uint64 // of directories
	Shared      uint64 // syncs of directories that were saved, since another call's covered them
	Corrupted   uint64 // objects found to be corrupted, counted each time
	Left        uint64 // temporary names that could not be removed, and wait for Sweep
	Folders     int    // directories open now
	OpenReaders int    // readers that are not closed yet
	Failed      bool   // a sync of a directory has failed: nothing is written any more
}

// Checked is what a Check has seen.
type Checked struct {
	Objects int   // objects that could be opened, and have a trailer
	Bytes   int64 // of their content
	Damaged int   // objects reported, including those that could not be opened
	Strays  int   // other files reported
}

// Finding is a fault in a store. Its error Is object.ErrCorrupted if the object could be
// read, but its bytes are not those that were put.
type Finding struct {
	Path string // below the store's directory
	Key  string // of the object, "" if it is none
	Err  error
}
