package fusefs

import "time"

// The bounds of a mount. Requests under way need none of ours: each is of a waiting thread, or one of maxBackground.
const (
	// maxTransfer is the size of one READ or WRITE of the kernel; it divides larger ones.
	maxTransfer = 1 << 20
	// maxBackground bounds the kernel's own requests, which no thread waits for (pages read ahead, pages of shared
	// mappings, files closed). Further ones wait in the kernel.
	maxBackground = 64

	// grace is how long a request goes on that was interrupted by a signal which its process may survive. Then it
	// is EINTR.
	grace = 850 * time.Millisecond
	// watchEvery is how often requests are looked at: whether the kernel has interrupted them, and then, and during a close,
	// whether their process dies.
	watchEvery = 50 * time.Millisecond
	// exitPatience is how long a process that ends by itself waits for its files to be closed. Nothing can
	// interrupt it any more. Then it ends, and the bytes are sent without it.
	exitPatience = 10 * time.Second
	// statePatience is how long the state of a process may take to be read. One that cannot be read is taken for alive.
	statePatience = 200 * time.Millisecond
	// settlePatience is how long what removes names waits for files whose closing was announced, and settleAge how
	// long ago that may have been. A file that was announced and stays open (dup(2), mmap(2)) has them pass.
	settlePatience = 200 * time.Millisecond
	settleAge      = time.Second

	// maxCallers and callerAge bound what is remembered of callers' groups: a process that changes its groups is
	// still taken for what it was until then. At maxCallers all are forgotten.
	maxCallers = 1024
	callerAge  = time.Second

	// sharedEntry is the longest time for which an entry is kept that one user has looked up and another may go
	// through. Then it is asked for again, in the name of whoever goes through it.
	sharedEntry = time.Second

	// listAge is how long it is believed whether a directory has a default list. One that another host has set or taken
	// away counts no later.
	listAge = time.Second

	// maxKeptLists bounds the access control lists that are kept of an object, in bytes as programs read them: 127 entries.
	// Longer ones are asked for each time.
	maxKeptLists = 1 << 10

	// plusBatch is how many entries of a listing that has attributes are handed out without them, when the kernel
	// no longer asks for them. Then the listing goes on without.
	plusBatch = 256
	// maxFarCookies bounds, for each open directory, the cookies that are too large for an offset of the kernel. The
	// oldest are forgotten; seekdir(3) to one of these is EINVAL.
	maxFarCookies = 1 << 16

	// lockPause and maxLockPause are how long a waiting request for a lock waits until it asks again: each time
	// twice as long.
	lockPause    = 10 * time.Millisecond
	maxLockPause = time.Second

	// maxTold bounds the errors that are kept of files whose closing nobody waited for. Further ones are logged.
	maxTold = 64
	// maxShown bounds the names of a path in a message. What is above is not shown: it may go in circles, where another
	// host has moved directories into each other.
	maxShown = 64
	// shrinkAt is the least size that the table of nodes had when it is made anew because most have gone.
	shrinkAt = 1024
)
