package nlm

import "time"

// A mount's client has many users. Each may take more only while it has less than is free (see may): one alone gets
// half of each bound, and however much others take, something is left for the next.
const (
	// maxLocks bounds the ranges that are locked, of all owners, and maxOwners the owners
	// that hold any, or ask for one. At the bound an operation is a [FullError]. An Unlock
	// that leaves two ranges of one is admitted all the same.
	maxLocks  = 1 << 15
	maxOwners = 1 << 13

	// maxPending bounds the operations that are under way, those included that are
	// settled after their caller has gone. At the bound an operation is a [FullError],
	// and is not begun.
	maxPending = 1 << 11

	// maxFences bounds what is kept of lost locks, by file and owner. At the bound the
	// oldest is forgotten. All locks that can be held may be lost at once.
	maxFences = maxLocks

	// maxReclaims bounds the locks that are asked for again at the same time.
	maxReclaims = 8

	// maxParts bounds the questions about what a server has of one lock. At the bound the rest
	// is lost.
	maxParts = 64

	// maxRounds bounds how often in a row one lock is asked for as a reclaim because the
	// server cannot decide whether it has a grace. At the bound it is lost.
	maxRounds = 16
)

const (
	// connectTime bounds the search for the lock manager. At the bound there is none, and
	// for missTime no lock looks for it again.
	connectTime = 15 * time.Second
	missTime    = 10 * time.Second

	// settleTime bounds what goes on after a caller has gone. At the bound a lock may stay
	// at the server; the log says so, and Stats.Unsettled counts it.
	settleTime = 60 * time.Second

	// closeTime bounds how long Close unlocks what is held.
	closeTime = 2 * time.Second

	// graceWait bounds how long a new lock waits for the end of a server's grace, which is
	// 45 to 90 s elsewhere. At the bound it is vfs.ErrBusy.
	graceWait = 150 * time.Second

	// watchEvery is how often the connection is tried while locks are held, and pingTime
	// bounds one such call. Together they are far below any grace.
	watchEvery = 10 * time.Second
	pingTime   = 5 * time.Second

	// SuspectTime bounds how long a restart of the server goes unnoticed while locks are held, from
	// when it takes connections again. A grace that ends before may give a lock to another while its
	// owner still relies on it. For a host that was silent the pauses of TCP between
	// its tries come on top.
	SuspectTime = watchEvery + 2*pingTime

	// freshTime is how long after an answer of the server its connection is not tried
	// before a lock of an owner that holds others, or an unlock.
	freshTime = time.Second

	// Between two tries there is a pause, which doubles up to maxPause.
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)
