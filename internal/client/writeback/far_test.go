package writeback

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// line is a link with a delay, over which bytes go one after another.
type line struct {
	delay     time.Duration
	bandwidth float64 // bytes per second

	mu   sync.Mutex
	busy time.Time // until then bytes of others are on it
}

// pass is what n bytes and the call around them take.
func (l *line) pass(ctx context.Context, n int) error {
	l.mu.Lock()
	now := time.Now()
	if l.busy.Before(now) {
		l.busy = now
	}
	l.busy = l.busy.Add(time.Duration(float64(n) / l.bandwidth * 1e9))
	wait := l.busy.Sub(now) + l.delay
	l.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// farFS is a file system at the far end of a line.
type farFS struct {
	vfs.FS
	line *line
}

type farFile struct {
	vfs.File
	line *line
}

func (f *farFS) As(*vfs.Caller) vfs.FS { return f }

func (f *farFS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	file, opened, err := f.FS.Open(ctx, at, how)
	if err != nil {
		return nil, opened, err
	}
	opened.Attr = vfs.Attr{} // as NFSv3, which asks nobody
	return &farFile{file, f.line}, opened, nil
}

func (f *farFile) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	n, eof, err := f.File.ReadAt(ctx, p, off, post)
	if late := f.line.pass(ctx, n); late != nil {
		return 0, false, late
	}
	return n, eof, err
}

func (f *farFile) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	if err := f.line.pass(ctx, len(p)); err != nil {
		return 0, err
	}
	return f.File.WriteAt(ctx, p, off, how, w)
}

func (f *farFile) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	if err := f.line.pass(ctx, 100); err != nil {
		return err
	}
	return f.File.Commit(ctx, off, n, w)
}

const (
	ms   = time.Millisecond
	unit = 128 << 10 // of READ and WRITE in these tests
)

// newFar returns a wrapper over a farFS.
func newFar(t *testing.T, delay time.Duration, bandwidth float64, opt Options) *rig {
	t.Helper()
	return newFarOf(t, unit, delay, bandwidth, opt)
}

// newFarOf is newFar with a size of READs and WRITEs.
func newFarOf(t *testing.T, unit uint32, delay time.Duration, bandwidth float64, opt Options) *rig {
	t.Helper()
	r := newRig(t, memfs.Options{ReadMax: unit, WriteMax: unit}, opt)
	r.fs.inner = &farFS{FS: r.below, line: &line{delay: delay, bandwidth: bandwidth}}
	return r
}
