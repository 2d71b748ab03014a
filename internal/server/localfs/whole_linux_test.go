package localfs

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/base/syncfs"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/internal/testkit/loopdisk"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// slow is a disk on which the syncs of objects wait until they are told to go on.
type slow struct {
	linux.OS
	began         chan struct{} // has an element for each sync that begins
	goOn          chan struct{} // closed: they go on
	fsyncs, whole atomic.Int32
	sick          atomic.Bool  // syncfs fails
	lost          atomic.Int32 // so many fsyncs from now one fails
}

func newSlow() *slow { return &slow{began: make(chan struct{}, 1000), goOn: make(chan struct{})} }

func (s *slow) Fsync(fd int) error {
	s.fsyncs.Add(1)
	s.began <- struct{}{}
	<-s.goOn
	if s.lost.Load() > 0 && s.lost.Add(-1) == 0 {
		return unix.EIO
	}
	return s.OS.Fsync(fd)
}

func (s *slow) Syncfs(fd int) error {
	s.whole.Add(1)
	if s.sick.Load() {
		return unix.EIO
	}
	return s.OS.Syncfs(fd)
}

// crowd syncs files objects at once. One less than leastWhole of them are alone, and wait until the
// others have been served by syncs of the whole, or wait as well. It returns each object's error.
func (s *slow) crowd(t *testing.T, f *FS, files int) []error {
	t.Helper()
	if f.whole == nil {
		if err := f.shareSyncs(); err != nil {
			t.Fatal(err)
		}
	}
	r := root(t, f)
	objects := make([]vfs.Handle, files)
	for i := range objects {
		objects[i] = mkfile(t, f, r, fmt.Sprint(i), "x")
	}
	errs := make([]error, files)
	var alone, others sync.WaitGroup
	for i := range leastWhole - 1 {
		alone.Go(func() { errs[i] = f.Sync(t.Context(), objects[i]) })
		<-s.began
	}
	for i := leastWhole - 1; i < files; i++ {
		others.Go(func() { errs[i] = f.Sync(t.Context(), objects[i]) })
	}
	if s.sick.Load() {
		<-s.began // one of the others, for which the sync of the whole has failed
	} else {
		others.Wait()
	}
	close(s.goOn)
	alone.Wait()
	others.Wait()
	return errs
}

// TestManySyncsAreOne: few objects are synced each by itself, and all that come then by syncs of the whole.
func TestManySyncsAreOne(t *testing.T) {
	sys := newSlow()
	f := volatileFS(t, Options{Sys: sys})
	for i, err := range sys.crowd(t, f, 64) {
		if err != nil {
			t.Errorf("object %d: %v", i, err)
		}
	}
	if n, alone := sys.whole.Load(), sys.fsyncs.Load(); n == 0 || alone != leastWhole-1 {
		t.Errorf("%d syncs of the whole and %d of an object for 64 objects", n, alone)
	}
	if s := f.Snapshot(); s.Dirty != 0 {
		t.Errorf("%d descriptors are dirty after their syncs", s.Dirty)
	}
}

// TestWholeFailure: a sync of the whole that fails changes the verifier, and each object is
// synced by itself. The one whose bytes are lost is told, and no other.
func TestWholeFailure(t *testing.T) {
	sys := newSlow()
	f := volatileFS(t, Options{Sys: sys, Report: func(error) {}})
	verf := f.verifier()
	sys.sick.Store(true)
	sys.lost.Store(20) // the twentieth fsync fails
	failed := 0
	for _, err := range sys.crowd(t, f, 64) {
		if err != nil {
			wantErr(t, err, vfs.ErrIO)
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d objects have failed, want the one whose fsync did", failed)
	}
	if f.verifier() == verf {
		t.Error("the write verifier still holds")
	}
	if n, alone := sys.whole.Load(), sys.fsyncs.Load(); n != 1 || alone != 64 {
		t.Errorf("%d syncs of the whole and %d of an object; want one, and then each by itself", n, alone)
	}
}

// TestManySyncsSurvive cuts the power while files are written, committed and renamed by many callers.
// Every name whose directory was synced is there, and has its bytes. With a sync of the whole that does
// nothing this is not so: the test can see it.
func TestManySyncsSurvive(t *testing.T) {
	need.Root(t, "it mounts a disk")
	for _, lies := range []bool{false, true} {
		t.Run(fmt.Sprintf("lies=%v", lies), func(t *testing.T) {
			d := loopdisk.New(t, t.TempDir())
			unmount := d.Mount()
			f, err := New(d.At, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if f.whole == nil {
				t.Skip("LEFT OUT: this kernel's syncfs may hide failures")
			}
			if lies {
				f.whole = syncfs.New(func(int) error { return nil }, 0, time.Now)
			}
			safe := d.Fill(f, 4*leastWhole, 400)
			syncs := f.Snapshot().Syncs
			_ = f.Close() // the disk takes nothing more
			unmount()
			defer d.Mount()()
			lost := d.Lost(safe)
			if lost != nil && !lies || lost == nil && lies {
				t.Errorf("of %d names: %v", len(safe), lost)
			}
			if !lies && syncs >= 2*uint64(len(safe)) {
				t.Errorf("%d syncs for %d files: none was shared", syncs, len(safe))
			}
		})
	}
}
