package dir

import "context"

// The bounds of a store.
const (
	// DefaultMaxSize is how large an object may be if Options do not say: what S3
	// takes, so that a store can be moved there. A larger one is
	// object.ErrTooLarge.
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
	// Put holds in memory; an object that fits one is read in one piece, too. The
	// usual small file fits, and the cost of a system call is lost in that of the
	// checksum.
	chunk = 64 << 10

	// maxFolders bounds the directories that are kept open. At the bound the one
	// not used for longest is closed; those in use may be more.
	maxFolders = 512

	// listBatch is how many names are read, or looked at, with one place at the
	// gate, and how many subdirectories are remembered at a time.
	listBatch = 256

	// maxBuckets is how many buckets a directory can have: as many as names have
	// beginnings. What else looks like one is left out.
	maxBuckets = 1440

	// maxEmptyReads is how often in a row a reader may give nothing and no error.
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

// Gate bounds how many calls may block on the disk at once. Every call that may
// is made between Enter and Leave, by the goroutine that wants it; no place is
// held while a caller's reader is waited for, nor while another is asked for.
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
	// ReadOnly opens a store that perhaps another process has open. Nothing is
	// locked, synced or written, and what is seen may be so new that a crash still
	// undoes it.
	ReadOnly bool
	// NoSync leaves all syncs out. A crash of the machine may then lose what was
	// acknowledged, or leave it damaged, which every read detects.
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
	Shared      uint64 // syncs of directories that were saved, since somebody else's did
	Corrupted   uint64 // objects that turned out to be, each time
	Left        uint64 // temporary names that could not be removed, and wait for Sweep
	Folders     int    // directories open now
	OpenReaders int    // readers that are not closed yet
	Failed      bool   // a sync of a directory has failed: nothing is written any more
}

// Checked is what a Check has seen.
type Checked struct {
	Objects int   // that could be opened, and have a trailer
	Bytes   int64 // of content
	Damaged int   // reported, with those that could not be opened
	Strays  int   // reported
}

// Finding is something wrong in a store. Its error Is object.ErrCorrupted if the
// disk gave bytes, and they are not those that were put.
type Finding struct {
	Path string // below the store's directory
	Key  string // of the object, "" if it is none
	Err  error
}
