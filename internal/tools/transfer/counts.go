package transfer

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// read is readFull, as fast as the Throttle lets it. If that has become slower since the file was begun,
// p is read in parts.
func (o *Options) read(ctx context.Context, f vfs.File, p []byte, off uint64, post *vfs.Attr) (n int, err error) {
	for {
		part := o.Throttle.Part(len(p) - n)
		if err := o.Throttle.Take(ctx, part); err != nil {
			return n, err
		}
		m, err := readFull(ctx, f, p[n:n+part], off+uint64(n), post)
		n += m
		if err != nil || m < part || n == len(p) {
			return n, err
		}
	}
}

// readFull reads until p is full or the file ends. It differs from vfs.ReadFull in that it
// passes on attributes, and that a count which cannot be is [ErrCount].
func readFull(ctx context.Context, f vfs.File, p []byte, off uint64, post *vfs.Attr) (n int, err error) {
	for n < len(p) {
		m, eof, err := f.ReadAt(ctx, p[n:], off+uint64(n), post)
		if m < 0 || m > len(p)-n || m == 0 && !eof && err == nil {
			return n, ErrCount
		}
		n += m
		if err != nil || eof {
			return n, err
		}
	}
	return n, nil
}

// writeFull writes all of p, and reports whether a COMMIT is needed to make it stable. It
// differs from vfs.WriteFull in that a count which cannot be is [ErrCount].
func writeFull(ctx context.Context, f vfs.File, p []byte, off uint64, how vfs.Stability) (unstable bool, err error) {
	for n := 0; n < len(p); {
		var w vfs.Written
		m, err := f.WriteAt(ctx, p[n:], off+uint64(n), how, &w)
		if err != nil {
			return unstable, err
		}
		if m <= 0 || m > len(p)-n {
			return unstable, ErrCount
		}
		unstable = unstable || w.Committed == vfs.Unstable
		n += m
	}
	return unstable, nil
}
