package vfs

import "context"

// Lock is a lock on a range of a file's bytes, as in fcntl(2) and NLM: advisory,
// shared or exclusive, and held by one owner.
type Lock struct {
	Owner     Owner
	Exclusive bool
	Off       uint64
	Len       uint64 // 0: to the end, however far the file grows
}

// Locker is an FS whose files can be locked. Locks are advisory: they hold against
// other owners that lock, through any view of this FS. Where the FS is a directory of
// this host, they also hold against its programs. No method waits for a lock: a caller
// that wants to wait asks again.
type Locker interface {
	// Lock takes l, or fails with [ErrLocked] if another owner's lock conflicts.
	// Locks of one owner never conflict: a range locked again takes the new kind.
	Lock(ctx context.Context, h Handle, l *Lock) error
	// Unlock frees the owner's locks of both kinds in the range, and keeps what they
	// cover beyond it. It is no error if there is nothing to free.
	Unlock(ctx context.Context, h Handle, l *Lock) error
	// TestLock returns a lock that conflicts with l; free is true if there is
	// none. The owner of a lock that a local program holds is the zero Owner.
	TestLock(ctx context.Context, h Handle, l *Lock) (holder Lock, free bool, err error)
	// ReleaseLocks frees the locks on all files of every owner for which whom is
	// true, such as those of a client that has restarted.
	ReleaseLocks(ctx context.Context, whom func(*Owner) bool) error
}
