package writeback

import "time"

const (
	// DefaultMaxDirty bounds the memory for bytes that are not yet known to be
	// stable, over all files of an FS and its views. At the bound WriteAt waits
	// until other bytes have become stable, or its context ends. A write in the middle
	// of dirty bytes cuts their piece in two, and copies one part: that may exceed the
	// bound by one WRITE's size a file. The bound is three times what maxInFlight WRITEs
	// carry: over a long way as much again is being COMMITted, and some waits for the
	// next COMMIT. With less the bound, and not the way, would say how many are in flight.
	DefaultMaxDirty = 96 << 20

	// maxShare bounds the share of one object: it takes at most so many times what it
	// leaves free of MaxDirty, which is seven eighths if it is alone. At this bound its own
	// writers wait, and others go on. So an object whose WRITEs the server puts off for ever
	// leaves an eighth to all others, and a second one an eighth of that. With the default
	// bound there is room for a WRITE of the largest size beside two such objects. With
	// any bound there is room beside one, as a WRITE carries at most an eighth of MaxDirty.
	maxShare = 7

	// commitShare is the part of MaxDirty, one divided by it, after which a file's
	// WRITEs are followed by a COMMIT while further ones are sent: so a writer at
	// the bound finds room again before all that is dirty has been sent. It is also
	// how many COMMITs of an object are in flight at once, behind: over a long way
	// each is for the share that was written while the one before was under way. At
	// that bound what has been written waits for the next.
	commitShare = 4

	// maxAge bounds how long bytes wait for more, for a Commit or a Close: then
	// they are sent and committed. Bytes that come while this is done wait until
	// they are as old, or it has ended.
	maxAge = 5 * time.Second

	// DefaultPatience bounds how long the WRITEs and COMMITs of an object are made
	// again while all of them fail for reasons that may pass. Beyond it the error
	// stays and the bytes are given up; lastTry is what each of those has that is
	// still to be sent then.
	DefaultPatience = 5 * time.Minute
	lastTry         = 5 * time.Second

	// retryMin is the pause before the second try. It doubles up to retryMax.
	retryMin = 100 * time.Millisecond
	retryMax = 5 * time.Second

	// maxRounds bounds how often a byte is sent because the verifier changed
	// after the time before. A server that restarts more often than this while
	// one and the same byte waits for its COMMIT does not store anything: the byte
	// is given up, with an error.
	maxRounds = 16

	// maxInFlight bounds the WRITEs of one object that are given to the file below
	// at once; more pieces queue. How many of them a server does well with is known
	// there. They are a third of DefaultMaxDirty if each carries as much as it may, and
	// the writes of other files do not wait for more than that.
	maxInFlight = 32

	// nearInFlight is the same where the file below is [vfs.Near]: no delay is to be
	// bridged, and the writers of one file wait for each other in the kernel.
	nearInFlight = 4

	// maxClosed bounds the objects without open files of which is remembered when bytes of
	// them became stable last. At the bound the oldest is forgotten. From then on replies
	// to calls that were made before that time, such as a long listing, are without a size.
	maxClosed = 1024

	// maxTails bounds the pieces of an object that wait for a next write to append
	// to them. At the bound the oldest is sent as it is.
	maxTails = 4

	// maxTransfer bounds a WRITE, whatever the server prefers, and minTransfer is what a
	// server can take that names nothing useful.
	maxTransfer = 1 << 20
	minTransfer = 4 << 10

	// closeLifetime bounds the Close below after the caller's context has ended.
	closeLifetime = 5 * time.Second
)
