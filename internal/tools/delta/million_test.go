package delta

import (
	"context"
	"iter"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// made is a made-up directory of many files, which takes no memory.
type made struct {
	dirOf
	files uint64
	back  bool // listed from the last to the first
	peak  *atomic.Uint64
}

func (f *made) ReadDir(_ context.Context, _ vfs.Handle, from vfs.Pos, _ vfs.Mask, _ uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		if from == (vfs.Pos{}) {
			f.listings++
		}
		e := vfs.Entry{Name: make([]byte, 0, 64)}
		for i := from.Cookie; i < f.files; i++ {
			n := i
			if f.back {
				n = f.files - 1 - i
			}
			if i%50_000 == 0 {
				f.measure()
			}
			e.Name = strconv.AppendUint(append(e.Name[:0], "IMG_20260101_"...), 1_000_000+n, 10)
			e.Name = append(e.Name, ".jpeg"...)
			e.FileID, e.Handle, e.Attr, e.Next = n, handle(n), attrs(n, vfs.TypeReg), vfs.Pos{Cookie: i + 1}
			if !yield(&e, nil) {
				return
			}
		}
	}
}

func (f *made) measure() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.peak.Store(max(f.peak.Load(), m.HeapAlloc))
}

// counting is a visitor that counts pairs, and wants nothing else.
type counting struct {
	log
	n atomic.Uint64
}

func (c *counting) Entry(ctx context.Context, d *Dir, e, there *vfs.Entry) error {
	if there == nil {
		return c.log.Entry(ctx, d, e, there)
	}
	c.n.Add(1)
	return nil
}

// TestMillion joins two equal directories of 1,000,000 entries: at most 16 listings a side, and no
// other call.
func TestMillion(t *testing.T) {
	need.Time(t, "two directories of 1,000,000 entries")
	const n = 1_000_000
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var peak atomic.Uint64
	left, right := &made{files: n, peak: &peak}, &made{files: n, back: true, peak: &peak}
	c := &counting{log: log{right: handle(1)}}
	if err := Tree(t.Context(), left, handle(1), right, Options{}, c); err != nil {
		t.Fatal(err)
	}
	c.is(t, "others", nil, nil, nil)
	if c.n.Load() != n || left.listings > 16 || right.listings > 16 || len(left.lookups)+len(right.lookups) > 0 {
		t.Errorf("%d pairs, %d and %d listings", c.n.Load(), left.listings, right.listings)
	}
	more := (peak.Load() - before.HeapAlloc) >> 20
	if more > 160 {
		t.Errorf("the heap grew by %d MiB", more)
	}
	t.Logf("%d and %d listings; the heap grew by %d MiB at most, garbage included", left.listings, right.listings, more)
}
