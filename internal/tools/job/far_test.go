package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestFarTree: over a long round trip, copying and verifying 421 directories and 1,263 files
// takes the round trips of the files, as many at once as are worked at. The directories'
// round trips do not add up.
func TestFarTree(t *testing.T) {
	const roundTrip = 40 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		var far atomic.Bool
		src, dst := newTree(t, unmarked{memfs.New(memfs.Options{Fault: func(context.Context, string, vfs.Handle) error {
			if far.Load() {
				time.Sleep(roundTrip)
			}
			return nil
		}})}), mem(t, memfs.Options{})
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

// unmarked has no extended attributes, like NFSv3.
type unmarked struct{ vfs.FS }

func (u unmarked) Unwrap() any { return u.FS }

func (unmarked) Holds(power any) bool {
	_, marks := power.(*vfs.Xattrer)
	return !marks
}

// nameless gives no attributes of what it opens by a handle, like NFS. To open and close
// takes no time there.
type nameless struct{ vfs.FS }

func (f nameless) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	file, opened, err := f.FS.Open(ctx, at, how)
	return file, vfs.Opened{H: opened.H}, err
}

// TestFarFileTrips: copying one file from afar takes one round trip before its bytes, and
// one after them if it is large. Both ends are asked once, and at the same time.
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

// there looks up what has the name.
func (tr *tree) there(path string) *There {
	tr.t.Helper()
	h := tr.at(path)
	a, err := tr.fs.GetAttr(tr.t.Context(), h, vfs.MaskV3)
	if err != nil {
		tr.t.Fatal(err)
	}
	return &There{h, a}
}

// TestFarDestTrips: if the caller knows what has the name, copying one file to afar takes no
// round trip before its temporary is made. The caller's knowledge counts like an answer.
func TestFarDestTrips(t *testing.T) {
	const roundTrip = 40 * time.Millisecond
	for name, tc := range map[string]struct {
		there bool // something has the name
		known bool
		trips time.Duration // WRITE, SETATTR, RENAME, and what is asked before
	}{
		"nothing there, asked": {false, false, 4},
		"nothing there, known": {false, true, 3},
		"replaced, asked":      {true, false, 4},
		"replaced, known":      {true, true, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			far := atomic.Bool{}
			src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
				if far.Load() && op != "open" && op != "close" && op != "info" { // which a mount knows
					time.Sleep(roundTrip)
				}
				return nil
			}})
			f := src.file("f", 0o644, []byte("contents"))
			o, _ := options(t, src, dst, "f")
			o.Source = Place{src.fs, f}
			there := new(There)
			if tc.there {
				dst.file("f", 0o600, []byte("old"))
				there = dst.there("f")
			}
			if tc.known {
				o.There = there
			}
			far.Store(true)
			begin := time.Now()
			if s, err := Copy(t.Context(), o); s.ExitCode(err) != ExitDone {
				t.Fatalf("%s: %v, %+v", name, err, s)
			}
			if trips := time.Since(begin) / roundTrip; trips != tc.trips {
				t.Errorf("%s: %d round trips, want %d", name, trips, tc.trips)
			}
		})
	}
}

// TestKnownToBeItself: a file is not copied onto itself, whether the job or its caller looked
// the name up.
func TestKnownToBeItself(t *testing.T) {
	same := mem(t, memfs.Options{})
	f := same.file("f", 0o644, []byte("contents"))
	o, _ := options(t, same, same, "f")
	o.Source = Place{same.fs, f}
	o.SourceDir, o.SourceName = o.Dest.Handle, "f"
	o.There = same.there("f")
	if _, err := Copy(t.Context(), o); !errors.Is(err, ErrIntoItself) {
		t.Errorf("%v", err)
	}
}
