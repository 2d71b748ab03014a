//go:build linux

package ofd

import (
	"errors"
	"fmt"
	"io"
	"math"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// MaxRanges bounds the ranges of one file that one owner holds apart. A call that would
// make more of them is vfs.ErrBusy.
const MaxRanges = 1024

// owner is the locks of one owner on one file. It is guarded by file.mu.
type owner struct {
	fd  int
	set byterange.Set // what the kernel holds for fd
}

// lock takes s, unless the kernel refuses.
func (w *owner) lock(s byterange.Span) error {
	return w.change(kindOf(s), s, w.copy().Put(s))
}

func (w *owner) unlock(s byterange.Span) error {
	return w.change(unix.F_UNLCK, s, w.copy().Take(s))
}

// copy keeps w.set as it is while the next one is made.
func (w *owner) copy() byterange.Set { return append(byterange.Set(nil), w.set...) }

// change has the kernel do to s what makes w's locks those of next.
func (w *owner) change(kind int16, s byterange.Span, next byterange.Set) error {
	if len(next) > MaxRanges && len(next) > len(w.set) {
		return fmt.Errorf("localfs: one owner holds %d ranges of one file apart: %w", len(w.set), vfs.ErrBusy)
	}
	k := flock(kind, s)
	err := linux.Again(func() error { return unix.FcntlFlock(uintptr(w.fd), unix.F_OFD_SETLK, &k) })
	switch {
	case err == nil:
		w.set = next
		return nil
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
		return vfs.ErrLocked
	case errors.Is(err, unix.EBADF):
		return vfs.ErrAccess // open for reading only
	case errors.Is(err, unix.ENOLCK):
		return fmt.Errorf("localfs: the kernel's table of locks is full: %w", vfs.ErrBusy)
	}
	return linux.Fail("fcntl", err)
}

// ask asks the kernel for a lock in the way of s, other than those of fd itself.
func ask(fd int, s byterange.Span) (held byterange.Span, free bool, err error) {
	k := flock(kindOf(s), s)
	err = linux.Again(func() error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &k) })
	if err != nil {
		return held, false, linux.Fail("fcntl", err)
	}
	if k.Type == unix.F_UNLCK {
		return held, true, nil
	}
	held, ok := byterange.Of(uint64(k.Start), uint64(k.Len), k.Type == unix.F_WRLCK)
	if !ok {
		return held, false, fmt.Errorf("localfs: the kernel tells of a lock of %d bytes at %d: %w", k.Len, k.Start, vfs.ErrIO)
	}
	return held, false, nil
}

func kindOf(s byterange.Span) int16 {
	if s.Exclusive {
		return unix.F_WRLCK
	}
	return unix.F_RDLCK
}

func flock(kind int16, s byterange.Span) unix.Flock_t {
	return unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: int64(s.First), Len: int64(min(s.Len(), math.MaxInt64))}
}
