//go:build unix

package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const (
	// lockWait is how long a run waits for the record of another one that ends: a process
	// that was killed may take a while to die. Then the record is in use.
	lockWait = 2 * time.Second
	// lockAgain is the time between two attempts to take the lock.
	lockAgain = 20 * time.Millisecond
)

// Locks says whether this system has locks that keep a second run of a job out.
const Locks = true

// Lock locks f, which may be a directory, for as long as it is open. It waits up to two
// seconds for another process. The error then Is ErrRecord, and names the process if it can.
func Lock(ctx context.Context, f *os.File) error {
	if err := lockFile(ctx, f); err != nil {
		return fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return nil
}

// lockFile takes the lock that keeps a second run of the job out. The system releases it
// when the file is closed or the process ends.
func lockFile(ctx context.Context, f *os.File) error {
	err := tryLock(f)
	for end := time.Now().Add(lockWait); errors.Is(err, syscall.EWOULDBLOCK) && time.Now().Before(end); err = tryLock(f) {
		select {
		case <-time.After(lockAgain):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("it is in use by %s: %w", holder(f), err)
	}
	return err
}

// Held reports whether a run has locked f, and which, as far as that is known. It tries the lock, which
// it has for an instant; it does not keep others that do so from it.
func Held(f *os.File) (by string, held bool, err error) {
	err = flock(f, syscall.LOCK_SH)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return holder(f), true, nil
	}
	return "", false, errors.Join(err, flock(f, syscall.LOCK_UN))
}

// tryLock takes the lock, or returns at once.
func tryLock(f *os.File) error { return flock(f, syscall.LOCK_EX) }

func flock(f *os.File, how int) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var lerr error
	if err := conn.Control(func(fd uintptr) {
		lerr = syscall.Flock(int(fd), how|syscall.LOCK_NB)
	}); err != nil {
		return err
	}
	return lerr
}
