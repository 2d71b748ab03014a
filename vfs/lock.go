package vfs

import "context"

// Lock is a lock on a range of a file's bytes, as fcntl(2) and NLM have them:
// advisory, shared or exclusive, and its owner's alone.
type Lock struct {
	Owner     Owner
	Exclusive bool
	Off       uint64
	Len       uint64 // 0: to the end, however far the file grows
}

// Locker is an FS whose files can be locked. The locks hold against all owners
// that ask for them: other owners of this FS, whatever view they use, and, where the FS is
// a directory of this host, its programs. No method waits for a lock: a caller that wants
// to wait asks again.
type Locker interface {
	// Lock takes l, or is an error that is [ErrLocked]. Locks of the same owner
	// never stand in each other's way: what is locked again takes the new kind.
	Lock(ctx context.Context, h Handle, l *Lock) error
	// Unlock frees the range, of whatever kind the owner's locks in it are; what
	// they cover beyond it stays. Nothing to free is no error.
	Unlock(ctx context.Context, h Handle, l *Lock) error
	// TestLock returns a lock that stands in l's way; free is true if there is
	// none. The owner of a lock that a local program holds is the zero Owner.
	TestLock(ctx context.Context, h Handle, l *Lock) (holder Lock, free bool, err error)
	// ReleaseLocks frees all locks, of all files, of the owners whom is true for:
	// those of a client that has restarted.
	ReleaseLocks(ctx context.Context, whom func(*Owner) bool) error
}
