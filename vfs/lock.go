package vfs

import (
	"context"
	"errors"
	"time"
)

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
// that wants to wait asks again ([AwaitLock]).
//
// An FS that asks another side for its locks has the power also where that side has
// none, or no room for another: the error then Is syscall.ENOLCK.
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

const (
	// AwaitLock asks again after a pause, which doubles from firstLockPause to
	// maxLockPause.
	firstLockPause = 2 * time.Millisecond
	maxLockPause   = time.Second
)

// AwaitLock takes l as soon as no other owner's lock stands in the way. It asks again and
// again, with growing pauses of at most a second, until ctx ends: those who wait are served
// in no order. Other errors of Lock end it.
func AwaitLock(ctx context.Context, k Locker, h Handle, l *Lock) error {
	for pause := firstLockPause; ; pause = min(2*pause, maxLockPause) {
		err := k.Lock(ctx, h, l)
		if !errors.Is(err, ErrLocked) || errors.Is(err, ErrUnknownOutcome) {
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

// LockerOf is the power of fs to lock. Without it every method is [ErrNotSupp]. It is for
// wrappers that pass the power on, and say by [Holder] whether they have it.
func LockerOf(fs FS) Locker {
	if k, ok := As[Locker](fs); ok {
		return k
	}
	return noLocker{}
}

type noLocker struct{}

func (noLocker) Lock(context.Context, Handle, *Lock) error   { return ErrNotSupp }
func (noLocker) Unlock(context.Context, Handle, *Lock) error { return ErrNotSupp }
func (noLocker) TestLock(context.Context, Handle, *Lock) (Lock, bool, error) {
	return Lock{}, false, ErrNotSupp
}
func (noLocker) ReleaseLocks(context.Context, func(*Owner) bool) error { return ErrNotSupp }
