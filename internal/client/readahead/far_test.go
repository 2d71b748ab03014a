package readahead

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/vfs"
)

// farFS is a file system at the far end of a line. Its files are as long as size
// says, and hold what content says, unless size is 0: then they are a memfs's.
type farFS struct {
	vfs.FS
	line *sim.Line
	size uint64

	mu     sync.Mutex
	mtime  time.Time
	reads  []span
	flying int
	most   int // READs that were in flight at once
}

type farFile struct {
	vfs.File
	fs *farFS
}

func (f *farFS) As(*vfs.Caller) vfs.FS { return f }

func (f *farFS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	file, opened, err := f.FS.Open(ctx, at, how)
	if err != nil {
		return nil, opened, err
	}
	opened.Attr = vfs.Attr{} // as NFSv3, which asks nobody
	return &farFile{file, f}, opened, nil
}

func content(p []byte, off uint64) {
	// One pattern for each 4 KiB, so that filling is quick.
	for len(p) > 0 {
		n := min(len(p), 4096-int(off%4096))
		copy(p[:n], pattern4K[off>>12%251+off%4096:])
		p, off = p[n:], off+uint64(n)
	}
}

var pattern4K = pattern(4096 + 251)

func (f *farFile) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	fs := f.fs
	fs.enter(span{off, off + uint64(len(p))})
	defer fs.leave()
	if fs.size == 0 {
		n, eof, err := f.File.ReadAt(ctx, p, off, post)
		if late := fs.line.Pass(ctx, n); late != nil {
			return 0, false, late
		}
		return n, eof, err
	}
	if err := fs.line.Pass(ctx, len(p)); err != nil {
		return 0, false, err
	}
	n := min(uint64(len(p)), fs.size-min(off, fs.size))
	content(p[:n], off)
	if post != nil {
		fs.mu.Lock()
		*post = vfs.Attr{Valid: vfs.MaskSize | vfs.MaskMtime, Size: fs.size, Mtime: fs.mtime}
		fs.mu.Unlock()
	}
	return int(n), off+n >= fs.size, nil
}

func (f *farFS) enter(s span) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads = append(f.reads, s)
	f.flying++
	f.most = max(f.most, f.flying)
}

func (f *farFS) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flying--
}

// flew is the number of READs that were in flight at once.
func (f *farFS) flew() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.most
}

// asked takes the READs so far.
func (f *farFS) asked() []span {
	f.mu.Lock()
	defer f.mu.Unlock()
	reads := f.reads
	f.reads = nil
	return reads
}

func (f *farFile) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	if err := f.fs.line.Pass(ctx, len(p)); err != nil {
		return 0, err
	}
	return f.File.WriteAt(ctx, p, off, how, w)
}

func (f *farFile) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	if err := f.fs.line.Pass(ctx, 100); err != nil {
		return err
	}
	return f.File.Commit(ctx, off, n, w)
}

const (
	ms   = time.Millisecond
	unit = 128 << 10 // of READ and WRITE in these tests
)

// newFar returns a rig over a farFS.
func newFar(t *testing.T, size uint64, delay time.Duration, bandwidth float64, opt Options) (*rig, *farFS) {
	t.Helper()
	return newFarOf(t, unit, size, delay, bandwidth, opt)
}

// newFarOf is newFar with a size of READs and WRITEs.
func newFarOf(t *testing.T, unit uint32, size uint64, delay time.Duration, bandwidth float64, opt Options) (*rig, *farFS) {
	t.Helper()
	far := &farFS{line: sim.NewLine(delay, bandwidth), size: size, mtime: time.Unix(1000, 0)}
	r := newRig(t, memfs.Options{ReadMax: unit, WriteMax: unit}, opt)
	far.FS = r.below
	r.ahead.FS = far
	return r, far
}

// readTo reads [from, to) in steps and compares.
func (r *rig) readTo(f vfs.File, from, to uint64, step int) {
	r.t.Helper()
	p, want := make([]byte, step), make([]byte, step)
	for off := from; off < to; off += uint64(step) {
		r.readOne(f, off, p, want)
	}
}

func (r *rig) readOne(f vfs.File, off uint64, p, want []byte) {
	r.t.Helper()
	clear(p)
	n, _, err := vfs.ReadFull(r.t.Context(), f, p, off)
	content(want, off)
	if err != nil || n != len(p) || string(p) != string(want) {
		r.t.Fatalf("%d bytes at %d: %d, %v, equal %v", len(p), off, n, err, string(p) == string(want))
	}
}
