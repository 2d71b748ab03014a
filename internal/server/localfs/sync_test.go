//go:build linux

package localfs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// failing is a disk whose syncs fail while it is told so.
type failing struct {
	linux.OS
	sick   atomic.Bool
	fsyncs atomic.Int64
}

func (s *failing) Fsync(fd int) error {
	s.fsyncs.Add(1)
	if s.sick.Load() {
		return unix.EIO
	}
	return s.OS.Fsync(fd)
}

func (s *failing) Fdatasync(fd int) error {
	if s.sick.Load() {
		return unix.EIO
	}
	return s.OS.Fdatasync(fd)
}

func openFile(t *testing.T, f vfs.FS, x vfs.Handle) vfs.File {
	t.Helper()
	file, _, err := f.Open(t.Context(), vfs.At{H: x}, &vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return file
}

func volatileFS(t *testing.T, o Options) *FS {
	t.Helper()
	o.Handles, o.Volatile = HandlesMap, true
	return open(t, t.TempDir(), o)
}

func TestSyncErrorChangesVerifier(t *testing.T) {
	for name, sync := range map[string]func(f *FS, file vfs.File, x vfs.Handle) error{
		"commit": func(_ *FS, file vfs.File, _ vfs.Handle) error {
			var w vfs.Written
			return file.Commit(context.Background(), 0, 0, &w)
		},
		"sync": func(f *FS, _ vfs.File, x vfs.Handle) error { return f.Sync(context.Background(), x) },
		"data sync write": func(_ *FS, file vfs.File, _ vfs.Handle) error {
			var w vfs.Written
			_, err := file.WriteAt(context.Background(), []byte{1}, 9, vfs.DataSync, &w)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var sys failing
			var reports atomic.Int64
			f := volatileFS(t, Options{Sys: &sys, Report: func(error) { reports.Add(1) }})
			x := mkfile(t, f, root(t, f), "x", "")
			file := openFile(t, f, x)
			var w, c vfs.Written
			if _, err := file.WriteAt(t.Context(), []byte("data"), 0, vfs.Unstable, &w); err != nil {
				t.Fatal(err)
			}
			sys.sick.Store(true)
			wantErr(t, sync(f, file, x), vfs.ErrIO)
			sys.sick.Store(false)
			if err := file.Commit(t.Context(), 0, 0, &c); err != nil {
				t.Fatal(err)
			}
			if c.Verf == w.Verf {
				t.Error("the verifier of a write whose sync failed still holds")
			}
			if reports.Load() == 0 {
				t.Error("nobody was told")
			}
		})
	}
}

// TestDirtyDescriptorsAreSyncedBeforeEviction fills the cache with files that
// were written to, on a disk that cannot sync.
func TestDirtyDescriptorsAreSyncedBeforeEviction(t *testing.T) {
	var sys failing
	f := volatileFS(t, Options{Sys: &sys, MaxOpen: 8})
	verf := f.verifier()
	sys.sick.Store(true)
	for i := range 32 {
		mkfile(t, f, root(t, f), fmt.Sprint(i), "dirty")
	}
	if f.verifier() == verf {
		t.Error("data was lost by closing its descriptor, and the verifier has not changed")
	}
	sys.sick.Store(false)
}

func TestDescriptorsAreBounded(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		o.MaxOpen = 8
		f := open(t, t.TempDir(), o)
		r := root(t, f)
		var all []vfs.Handle
		for i := range 50 {
			all = append(all, mkfile(t, f, r, fmt.Sprint(i), fmt.Sprint(i)))
		}
		for i, x := range all {
			if got := content(t, f, x); got != fmt.Sprint(i) {
				t.Errorf("%d reads %q", i, got)
			}
		}
		if n := f.Snapshot().Open; n > 8 {
			t.Errorf("%d descriptors are open", n)
		}
		var files []vfs.File
		var busy error
		for _, x := range all {
			file, _, err := f.Open(t.Context(), vfs.At{H: x}, &vfs.OpenHow{Access: vfs.ShareRead})
			if err != nil {
				busy = err
				break
			}
			files = append(files, file)
		}
		wantErr(t, busy, vfs.ErrBusy)
		for _, file := range files {
			if err := file.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if got := content(t, f, all[49]); got != "49" {
			t.Errorf("afterwards, reads %q", got)
		}
	})
}

// TestFlightsShare checks that all who come while a sync runs share the next
// one, and that nobody is served by one that began before he came.
func TestFlightsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f syncGroups
		f.init()
		gate := make(chan struct{})
		var began, fulls atomic.Int64
		run := func(full bool) error {
			began.Add(1)
			if full {
				fulls.Add(1)
			}
			<-gate
			return nil
		}
		var wg sync.WaitGroup
		wg.Go(func() { _ = f.join(t.Context(), vfs.Handle{}, false, run) })
		synctest.Wait()
		for i := range 20 {
			wg.Go(func() { _ = f.join(t.Context(), vfs.Handle{}, i == 13, run) })
		}
		ctx, cancel := context.WithCancel(t.Context())
		synctest.Wait()
		wg.Go(func() {
			if err := f.join(ctx, vfs.Handle{}, false, run); !errors.Is(err, context.Canceled) || !errors.Is(err, vfs.ErrUnknownOutcome) {
				t.Errorf("a cancelled wait: %v", err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		if began.Load() != 1 {
			t.Errorf("%d syncs run at once", began.Load())
		}
		close(gate)
		wg.Wait()
		if began.Load() != 2 || fulls.Load() != 1 || len(f.m) != 0 {
			t.Errorf("%d syncs, %d of them full, %d lanes left; want 2, 1, 0", began.Load(), fulls.Load(), len(f.m))
		}
	})
}

func TestDirectorySyncsAreShared(t *testing.T) {
	var sys failing
	f := volatileFS(t, Options{Sys: &sys})
	r := root(t, f)
	const workers, each = 16, 20
	var wg sync.WaitGroup
	before := sys.fsyncs.Load()
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				mkdir(t, f, r, fmt.Sprint(w, " ", i))
				if err := f.Sync(t.Context(), r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := sys.fsyncs.Load() - before; n > workers*each || n == 0 {
		t.Errorf("%d syncs for %d names", n, workers*each)
	}
}

func TestSyncOfWhatCannotBeOpened(t *testing.T) {
	f := volatileFS(t, Options{})
	r := root(t, f)
	for name, how := range map[string]*vfs.CreateHow{
		"link": {Type: vfs.TypeSymlink, Target: "nowhere"},
		"fifo": {Type: vfs.TypeFIFO},
		"dir":  {Type: vfs.TypeDir},
		"file": {Type: vfs.TypeReg},
	} {
		x, _, _, err := f.Create(t.Context(), r, name, how)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(t.Context(), x); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSyncWithoutRoom: with every descriptor in use, what a change has made is synced all the
// same. An error would have the client make it again, and find that it exists.
func TestSyncWithoutRoom(t *testing.T) {
	f := volatileFS(t, Options{MaxOpen: 16})
	r := root(t, f)
	made := mkfile(t, f, r, "first", "x")
	for i := 0; ; i++ {
		how := vfs.OpenHow{Access: vfs.ShareWrite, Create: &vfs.CreateHow{Type: vfs.TypeReg}}
		file, _, err := f.Open(t.Context(), vfs.At{Dir: r, Name: fmt.Sprintf("held%d", i)}, &how)
		if errors.Is(err, vfs.ErrBusy) {
			break
		}
		if err != nil || i > 16 {
			t.Fatalf("file %d: %v", i, err)
		}
		defer func() {
			if err := file.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
	}
	for name, x := range map[string]vfs.Handle{"the file": made, "its directory": r} {
		if err := f.Sync(t.Context(), x); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
