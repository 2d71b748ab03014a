package writeback

import (
	"context"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/vfs"
)

// farFS is a file system at the far end of a line.
type farFS struct {
	vfs.FS
	line *sim.Line
}

type farFile struct {
	vfs.File
	line *sim.Line
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
	if late := f.line.Pass(ctx, n); late != nil {
		return 0, false, late
	}
	return n, eof, err
}

func (f *farFile) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	if err := f.line.Pass(ctx, len(p)); err != nil {
		return 0, err
	}
	return f.File.WriteAt(ctx, p, off, how, w)
}

func (f *farFile) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	if err := f.line.Pass(ctx, 100); err != nil {
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
	r.over(&farFS{FS: r.below, line: sim.NewLine(delay, bandwidth)})
	return r
}
