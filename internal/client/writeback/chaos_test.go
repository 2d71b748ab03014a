package writeback

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// moody is an FS of which every reply may be late, short, lost or an excuse, and
// whose server restarts now and then, before, between and behind its calls.
type moody struct {
	vfs.FS
	restart func()

	mu  sync.Mutex
	rnd *rand.Rand
}

// one is true once in n times.
func (m *moody) one(n int) bool { return m.upTo(n) == 0 }

func (m *moody) upTo(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rnd.IntN(n)
}

// pause is part of the way to the server, or back; it may be gone by then.
func (m *moody) pause(restarts int) {
	time.Sleep(time.Duration(m.upTo(2000)) * time.Microsecond)
	if m.one(restarts) {
		m.restart()
	}
}

func (m *moody) short(p []byte) []byte {
	if m.one(6) {
		return p[:1+m.upTo(len(p))]
	}
	return p
}

func (m *moody) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	f, opened, err := m.FS.Open(ctx, at, how)
	if err != nil {
		return nil, opened, err
	}
	return &moodyFile{f, m}, opened, nil
}

type moodyFile struct {
	vfs.File
	m *moody
}

func (f *moodyFile) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	f.m.pause(10_000)
	n, eof, err := f.File.ReadAt(ctx, f.m.short(p), off, post)
	f.m.pause(10_000)
	if post != nil && f.m.one(4) {
		*post = vfs.Attr{}
	}
	return n, eof, err
}

func (f *moodyFile) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	f.m.pause(2000)
	if how != vfs.Unstable {
		return f.File.WriteAt(ctx, p, off, how, w) // which nobody makes again
	}
	if f.m.one(20) {
		return 0, vfs.ErrBusy
	}
	if f.m.one(10) {
		how = vfs.FileSync
	}
	n, err := f.File.WriteAt(ctx, f.m.short(p), off, how, w)
	f.m.pause(2000)
	if f.m.one(20) {
		return 0, fmt.Errorf("no reply: %w", vfs.ErrUnknownOutcome)
	}
	return n, err
}

func (f *moodyFile) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	f.m.pause(40)
	if f.m.one(20) {
		return vfs.ErrBusy
	}
	err := f.File.Commit(ctx, off, n, w)
	f.m.pause(40)
	if f.m.one(8) {
		return fmt.Errorf("no reply: %w", vfs.ErrUnknownOutcome)
	}
	return err
}

// TestMoodyServer has several callers open, write, read and close one file, each in
// his own part of it, while others change its attributes and, behind those parts,
// its size.
func TestMoodyServer(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { moodyServer(t, seed) })
		})
	}
}

func moodyServer(t *testing.T, seed uint64) {
	const parts, part = 4, 60_001
	var opt Options
	if seed%2 == 1 {
		opt.MaxDirty = 64 << 10
	}
	r := newRig(t, memfs.Options{ReadMax: 4096, WriteMax: 4096}, opt)
	r.readAhead(&moody{FS: r.below, restart: r.below.Restart, rnd: rand.New(rand.NewPCG(seed, 9))}, 256<<10)
	last, h := r.open("f", vfs.OpenHow{})
	want := make([]byte, parts*part)
	var wg sync.WaitGroup
	for i := range uint64(parts) {
		wg.Go(func() {
			for turn := range uint64(3) {
				f, _ := r.open("f", vfs.OpenHow{})
				ownPart(t, f, i*part, want[i*part:(i+1)*part], 100*seed+10*turn+i)
				if err := f.Close(t.Context()); err != nil {
					t.Errorf("Close: %v", err)
				}
			}
		})
	}
	wg.Go(func() {
		for i := range uint64(30) {
			set := vfs.SetAttr{Valid: vfs.MaskSize, Size: parts*part + i}
			if i%2 == 0 {
				set = vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}
			}
			if _, err := r.fs.SetAttr(t.Context(), h, &set, nil); err != nil {
				t.Errorf("SetAttr: %v", err)
			}
			if _, err := r.fs.GetAttr(t.Context(), h, vfs.MaskSize); err != nil {
				t.Errorf("GetAttr: %v", err)
			}
			time.Sleep(20 * ms)
		}
	})
	wg.Wait()
	_, err := last.Truncate(t.Context(), parts*part)
	r.ok(err)
	r.ok(last.Close(t.Context()))
	r.wantBelow(h, want)
}
