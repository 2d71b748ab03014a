//go:build linux

package localfs

import (
	"context"
	"errors"
	"io"
	"math"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// ReadAt implements vfs.File: a pread and one statx, which says whether the
// caller may have what was read, where the file ends, and what post wants. What
// is in memory is read without a place in the gate.
func (f *file) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	if f.r == nil {
		return 0, false, vfs.ErrAccess
	}
	if err := f.ready(ctx); err != nil {
		return 0, false, err
	}
	defer f.leave()
	p = p[:min(len(p), MaxIO)]
	if off > math.MaxInt64-MaxIO {
		p = p[:0]
	}
	var st linux.Stat
	n, done, err := f.tryRead(p, off, &st)
	if err == nil && !done {
		n, err = f.readOn(ctx, p, n, off, &st)
	}
	if err != nil {
		return 0, false, err
	}
	if post != nil {
		f.fs.attr(&st, post)
	}
	// Nothing was read where the end was, though the file may have grown since.
	eof = off+uint64(n) >= st.Size || n == 0 && len(p) > 0
	return n, eof, nil
}

// tryRead reads without waiting, and fills st. Where that cannot be done, or the
// rights cannot be told by the mode alone, done is false: the first n bytes are
// there, and readOn goes on behind them.
func (f *file) tryRead(p []byte, off uint64, st *linux.Stat) (n int, done bool, err error) {
	v := f.fs
	if !v.attrsInMemory {
		return 0, false, nil
	}
	n, ok := v.o.Gate.TryRead(f.r.FD, p, int64(off))
	if !ok && n == 0 {
		return 0, false, nil
	}
	if err := st.Of(f.r.FD); err != nil {
		return 0, false, linux.Fail("statx", err)
	}
	if !ok && off+uint64(n) < st.Size || !v.byMode(f.r, st) {
		return n, false, nil
	}
	if err := f.check(st, true, false); err != nil {
		return 0, false, err
	}
	v.counts.nowaitHits.Add(1)
	return n, true, nil
}

// readOn reads what is missing behind the first n bytes of p, and fills st.
func (f *file) readOn(ctx context.Context, p []byte, n int, off uint64, st *linux.Stat) (int, error) {
	v := f.fs
	if err := v.enter(ctx, classRead); err != nil {
		return 0, err
	}
	defer v.end(classRead)
	v.counts.nowaitMisses.Add(1)
	if n < len(p) {
		more, err := v.pread(f.r.FD, p[n:], int64(off)+int64(n))
		if err != nil {
			return 0, err
		}
		n += more
	}
	if err := st.Of(f.r.FD); err != nil {
		return 0, linux.Fail("statx", err)
	}
	return n, f.check(st, true, false)
}

// byMode reports whether the mode alone says what the caller may, or what was
// found out about the rest the last time: nothing need be asked of the disk.
func (v *FS) byMode(d *fdcache.Desc, st *linux.Stat) bool {
	return v.owns(st) || d.ACL.Load() == int64(st.Change())<<1
}

func (f *file) NextData(ctx context.Context, off uint64) (uint64, error) {
	n, err := f.seek(ctx, off, unix.SEEK_DATA)
	if errors.Is(err, vfs.ErrNXIO) {
		return 0, io.EOF
	}
	return n, err
}

// NextHole implements vfs.HoleSeeker. Behind the end all is hole.
func (f *file) NextHole(ctx context.Context, off uint64) (uint64, error) {
	n, err := f.seek(ctx, off, unix.SEEK_HOLE)
	if errors.Is(err, vfs.ErrNXIO) {
		return off, nil
	}
	return n, err
}

// seek moves the offset of a descriptor that is read by pread only.
func (f *file) seek(ctx context.Context, off uint64, whence int) (uint64, error) {
	if off > math.MaxInt64 {
		return 0, vfs.ErrNXIO
	}
	if err := f.begin(ctx, classRead); err != nil {
		return 0, err
	}
	defer f.end(classRead)
	d := f.r
	if d == nil {
		d = f.w
	}
	n, err := unix.Seek(d.FD, int64(off), whence)
	if err != nil {
		return 0, linux.Fail("lseek", err)
	}
	return uint64(n), nil
}
