package writeback

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// stuckFS is an FS whose server puts off the WRITEs of some objects until let is closed: it
// refuses them as busy, or does not answer.
type stuckFS struct {
	vfs.FS
	silent bool
	let    chan struct{}
	stuck  map[vfs.Handle]bool
}

type stuckFile struct {
	vfs.File
	fs *stuckFS
}

func (s *stuckFS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	f, opened, err := s.FS.Open(ctx, at, how)
	if err == nil && s.stuck[opened.H] {
		f = &stuckFile{f, s}
	}
	return f, opened, err
}

func (f *stuckFile) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	if f.fs.silent {
		select {
		case <-f.fs.let:
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: %w", vfs.ErrUnknownOutcome, ctx.Err())
		}
	}
	select {
	case <-f.fs.let:
		return f.File.WriteAt(ctx, p, off, how, w)
	default:
		return 0, vfs.ErrBusy
	}
}

// TestStuckObjects: one or two objects whose WRITEs are put off for ever leave room to writers
// of others, though each of them has a writer that goes on as long as it may.
func TestStuckObjects(t *testing.T) {
	for _, silent := range []bool{false, true} {
		for _, many := range []int{1, 2} {
			t.Run(fmt.Sprintf("silent %v/%d", silent, many), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { stuckObjects(t, silent, many) })
			})
		}
	}
}

func stuckObjects(t *testing.T, silent bool, many int) {
	r := newRig(t, memfs.Options{WriteMax: 4096}, Options{MaxDirty: 256 << 10, Patience: math.MaxInt64})
	below := &stuckFS{FS: r.below, silent: silent, let: make(chan struct{}), stuck: make(map[vfs.Handle]bool)}
	r.over(below)
	data := pattern(512 << 10)
	var writers sync.WaitGroup
	for i := range many {
		name := fmt.Sprint("stuck ", i)
		f, h := r.open(name, vfs.OpenHow{})
		r.ok(f.Close(t.Context()))
		below.stuck[h] = true
		f, _ = r.open(name, vfs.OpenHow{})
		writers.Go(func() {
			for off := 0; off < len(data); off += 4096 {
				r.write(f, uint64(off), data[off:off+4096])
			}
			r.ok(f.Close(t.Context()))
			r.wantBelow(h, data)
		})
	}
	time.Sleep(time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 3 {
		f, h := r.open(fmt.Sprint("free ", i), vfs.OpenHow{})
		for off := 0; off < len(data); off += 4096 {
			var w vfs.Written
			if n, err := f.WriteAt(ctx, data[off:off+4096], uint64(off), vfs.Unstable, &w); n != 4096 || err != nil {
				t.Errorf("a write of another object at %d: %d, %v", off, n, err)
				break
			}
		}
		if err := f.Close(ctx); err != nil {
			t.Errorf("Close of another object: %v", err)
		}
		if !t.Failed() {
			r.wantBelow(h, data)
		}
	}
	close(below.let)
	writers.Wait()
}
