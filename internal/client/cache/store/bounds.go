package store

import "time"

const (
	// Name is the store's directory, below the one that the user names. A tag is appended.
	Name = "nfsbox-cache"

	// DefaultGranule is the unit in which a file is kept, in bytes. It is a power of two.
	DefaultGranule = 256 << 10
	// MinGranule is the least that it may be: smaller ones would make the tables large.
	MinGranule = 64 << 10
	// MaxGranule is the most that it may be: a read of a few bytes may fetch as much.
	MaxGranule = 1 << 20

	// block is the unit of accounting, and of the files' layout, in bytes.
	block = 4 << 10

	// perPage is how many granules a page of the table describes.
	perPage = 640
	// maxGranules bounds the granules of an entry: 1 TiB in granules of 256 KiB. A larger file
	// is not cached.
	maxGranules = 1 << 22

	// maxName bounds each text in an entry's header, in bytes. A key with a longer one is not
	// cached; a longer Label is cut.
	maxName = 255

	// maxEntries bounds the entries of a store. At the bound the oldest goes.
	maxEntries = 1 << 24

	// flushBytes is how much of an entry is written before its table is, in bytes. What
	// a crash may cost is bounded by it. The table is also written when its last user is done.
	flushBytes = 64 << 20

	// cullBatch is how many entries are culled before the disk's free space is asked for again.
	cullBatch = 64
	// cullPause is how often free space is looked at while nothing is written, and the counters are written, and
	// how long a disk that was full is left alone.
	cullPause = 10 * time.Second
	// cullBytes is how much is written before free space is looked at again, in bytes.
	cullBytes = 16 << 20
	// pinShare16 is how much of Options.Size pinned entries may take, in sixteenths of it. What is pinned
	// beyond is culled like the rest. Without a Size there is no bound: then culling finds nothing when all is
	// pinned, and at stop nothing more is kept.
	pinShare16 = 8
	// spare16 is what culling leaves free below Options.Size, in sixteenths of it.
	spare16 = 1

	// maxSmall bounds the files of a store that have one record each, in bytes. A longer one is damaged.
	maxSmall = 64 << 10

	// maxIndex bounds the index file, in bytes. A longer one is not read, and the directory is
	// listed instead.
	maxIndex = indexHead + maxEntries*indexRecord + 4

	// scanners is how many goroutines list the directory after a crash.
	scanners = 4
)

// Limits are the percentages of cachefilesd.conf(5): of the free blocks and files of the disk.
type Limits struct{ Brun, Bcull, Bstop, Frun, Fcull, Fstop int }

// DefaultLimits are those of the cachefilesd.conf that is shipped.
var DefaultLimits = Limits{Brun: 10, Bcull: 7, Bstop: 3, Frun: 10, Fcull: 7, Fstop: 3}
