package dir

import "context"

// The bounds of a store.
const (
	// DefaultMaxSize bounds an object, in bytes, if Options do not say. It is that of
	// S3, so that a store can be moved there. A larger object is object.ErrTooLarge.
	DefaultMaxSize = 5 << 40

	// DefaultFanout and MaxFanout are how many characters of a name choose its
	// directory: two hexadecimal digits make 256 of them, and whatever keys are
	// made of, there are never more than 1440 side by side.
	DefaultFanout = 2
	MaxFanout     = 2

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
	// gate, and how many subdirectories are remembered at a time.
	listBatch = 256

	// maxBuckets is how many buckets a directory can have: as many as names have
	// beginnings. Further directories that look like buckets are left out.
	maxBuckets = 1440

	// maxEmptyReads is how often in a row a reader may return no bytes and no error.
	// Then it is io.ErrNoProgress.
	maxEmptyReads = 100
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
	// Fanout is how many leading characters of a name choose its directory, 1 to
	// MaxFanout; 0 is DefaultFanout. It is fixed when the store is made.
	Fanout int
	// ReadOnly opens a store that another process may have open. Nothing is locked,
	// synced or written, and a crash may still undo what is seen.
	ReadOnly bool
	// NoSync leaves all syncs out. A crash of the machine may then lose objects that
	// were stored, or damage them, which a read of the whole object detects.
	NoSync bool
	// MaxSize bounds an object, in bytes; 0 is DefaultMaxSize.
	MaxSize int64
	// Gate is nil for one of the store's own with DefaultParallel places.
	Gate Gate
	// Sys is nil for the operating system.
	Sys Sys
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
