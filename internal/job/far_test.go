package job

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestFarTree: what a copy and a verification of 421 directories and 1,263 files cost
// over a long way is the round trips of the files, as many together as are worked at,
// and not those of the directories one after the other.
func TestFarTree(t *testing.T) {
	const roundTrip = 40 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		var far atomic.Bool
		src, dst := mem(t, memfs.Options{Fault: func(context.Context, string, vfs.Handle) error {
			if far.Load() {
				time.Sleep(roundTrip)
			}
			return nil
		}}), mem(t, memfs.Options{})
		for i := range 20 {
			src.dir(fmt.Sprint(i))
			for j := range 20 {
				dir := fmt.Sprintf("%d/%d", i, j)
				src.dir(dir)
				for k := range 3 {
					src.file(fmt.Sprintf("%s/f%d", dir, k), 0o644, []byte("contents"))
				}
			}
		}
		far.Store(true)
		begin := time.Now()
		o, v := options(t, src, dst, "")
		if s, err := Copy(t.Context(), o); s.ExitCode(err) != ExitDone {
			t.Fatalf("%v, %+v\n%s", err, s, v)
		}
		copied := time.Since(begin) / roundTrip
		if s, got := verify(t, src, dst, nil); s.ExitCode(nil) != ExitDone {
			t.Errorf("%+v, %q", s, got)
		}
		verified := time.Since(begin)/roundTrip - copied
		t.Logf("copy: %d round trips, verify: %d", copied, verified)
		// A file in memory costs four calls. Without listings ahead the copy took 114, and
		// the verification of 16 files at once 309.
		if copied > 90 || verified > 200 {
			t.Errorf("%d round trips to copy and %d to verify, want at most 90 and 200", copied, verified)
		}
	})
}

// nameless tells nothing of what it opens by a handle, as over NFS, where that takes no time
// and neither does to close it.
type nameless struct{ vfs.FS }

func (f nameless) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	file, opened, err := f.FS.Open(ctx, at, how)
	return file, vfs.Opened{H: opened.H}, err
}

// TestFarFileTrips: to copy one file from afar takes one round trip before its bytes, and
// one behind them if it is large: what is asked of both ends is asked at once, and once.
func TestFarFileTrips(t *testing.T) {
	const roundTrip = 40 * time.Millisecond
	for size, want := range map[int]time.Duration{100: 2, 4 << 20: 3} {
		synctest.Test(t, func(t *testing.T) {
			src, dst := mem(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
				if op != "open" && op != "close" {
					time.Sleep(roundTrip)
				}
				return nil
			}}), mem(t, memfs.Options{})
			f := src.file("f", 0o644, bytes.Repeat([]byte("x"), size))
			o, _ := options(t, src, dst, "f")
			o.Source = Place{nameless{src.fs}, f}
			begin := time.Now()
			if s, err := Copy(t.Context(), o); s.ExitCode(err) != ExitDone {
				t.Fatalf("%v, %+v", err, s)
			}
			if trips := time.Since(begin) / roundTrip; trips != want {
				t.Errorf("%d bytes: %d round trips, want %d", size, trips, want)
			}
		})
	}
}
