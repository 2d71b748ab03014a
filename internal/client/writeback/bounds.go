package writeback

import "time"

const (
	// DefaultMaxDirty bounds the memory for bytes that are not yet known to be stable, over all
	// files of an FS and its views. At the bound WriteAt waits until other bytes have become
	// stable, or its context ends. A write in the middle of dirty bytes cuts their piece in two,
	// and copies one part. That may exceed the bound by one WRITE's size a file.
	//
	// The bound is three times what maxInFlight WRITEs carry. Over a long way a third is in
	// flight, a third is being COMMITted, and the rest waits for the next COMMIT. With a lower
	// bound fewer WRITEs would be in flight than the way needs.
	DefaultMaxDirty = 96 << 20

	// maxShare bounds the share of one object: it takes at most so many times what it
	// leaves free of MaxDirty, which is seven eighths if it is alone. At this bound its own
	// writers wait, and others go on. So an object whose WRITEs the server puts off for ever
	// leaves an eighth to all others, and a second one an eighth of that. With the default
	// bound there is room for a WRITE of the largest size beside two such objects. With
	// any bound there is room beside one, as a WRITE carries at most an eighth of MaxDirty.
	maxShare = 7

	// commitShare says how many parts MaxDirty has. When an object has written such a part since
	// its last COMMIT, another COMMIT is sent, beside further WRITEs. So a writer at the bound
	// finds room again before everything dirty has been sent. It is also how many of these COMMITs
	// of an object may be in flight. At that bound, what has been written waits for the next.
	commitShare = 4

	// maxAge is how long bytes stay dirty without a Commit or a Close. Then all bytes of the
	// object are sent and committed, which is a flush. Bytes that come during a flush wait for the
	// next. That begins maxAge after this one began, or when this one ends if it takes longer.
	maxAge = 5 * time.Second

	// DefaultPatience bounds how long the WRITEs and COMMITs of an object are made again while all
	// of them fail for reasons that may pass. Then the error stays, and the bytes are given up.
	// WRITEs of the object that still wait for their turn then get lastTry each.
	DefaultPatience = 5 * time.Minute
	lastTry         = 5 * time.Second

	// retryMin is the pause before the second try. It doubles up to retryMax.
	retryMin = 100 * time.Millisecond
	retryMax = 5 * time.Second

	// maxRounds bounds how often a byte is sent if the server's verifier changes each time before
	// the byte is stable. A server that restarts so often stores nothing: the byte is given up,
	// with an error.
	maxRounds = 16

	// maxInFlight bounds the WRITEs of one object that are given to the file below at once; more
	// pieces queue. The FS below decides how many of them the server gets at a time. If each
	// carries as much as it may, they are a third of DefaultMaxDirty. So one object never puts
	// more than that before a WRITE of another.
	maxInFlight = 32

	// nearInFlight is the same where the file below is [vfs.Near]: there is no delay to bridge,
	// and the kernel lets only one writer of a file run at a time.
	nearInFlight = 4

	// maxClosed bounds the objects without open files of which is remembered when bytes of
	// them became stable last. At the bound the oldest is forgotten. From then on replies
	// to calls that were made before that time, such as a long listing, are without a size.
	maxClosed = 1024

	// maxTails bounds the pieces of an object that wait for a next write to append
	// to them. At the bound the oldest is sent as it is.
	maxTails = 4

	// maxTransfer bounds a WRITE, whatever the server prefers. A server that names less than
	// minTransfer, or nothing, is sent so much. What it does not take is sent once more.
	maxTransfer = 1 << 20
	minTransfer = 4 << 10

	// closeLifetime bounds the Close below after the caller's context has ended.
	closeLifetime = 5 * time.Second
)
