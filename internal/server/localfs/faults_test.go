//go:build linux

package localfs

import (
	"context"
	"errors"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// faulty is a disk on which one kind of call fails.
type faulty struct {
	linux.OS
	mu   sync.Mutex
	fail string
}

func (s *faulty) breakDown(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = call
}

func (s *faulty) broken(call string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail == call {
		return unix.EIO
	}
	return nil
}

func (s *faulty) Pwrite(fd int, p []byte, off int64) (int, error) {
	if err := s.broken("pwrite"); err != nil {
		return 0, err
	}
	return s.OS.Pwrite(fd, p, off)
}

func (s *faulty) Ftruncate(fd int, size int64) error {
	return errors.Join(s.broken("ftruncate"), s.OS.Ftruncate(fd, size))
}

func (s *faulty) Fdatasync(fd int) error {
	return errors.Join(s.broken("fdatasync"), s.OS.Fdatasync(fd))
}
func (s *faulty) Fsync(fd int) error  { return errors.Join(s.broken("fsync"), s.OS.Fsync(fd)) }
func (s *faulty) Syncfs(fd int) error { return errors.Join(s.broken("syncfs"), s.OS.Syncfs(fd)) }

// TestDiskErrorsReachTheCaller breaks each call that matters to durability. The
// caller whom it fails is told, and no other call is; where bytes that somebody
// has been told of may be lost with it, the write verifier changes.
func TestDiskErrorsReachTheCaller(t *testing.T) {
	ctx := context.Background()
	write := func(how vfs.Stability) func(*FS, vfs.File, vfs.Handle) error {
		return func(_ *FS, file vfs.File, _ vfs.Handle) error {
			_, err := file.WriteAt(ctx, []byte("more"), 4, how, new(vfs.Written))
			return err
		}
	}
	sync := func(name string) func(*FS, vfs.File, vfs.Handle) error {
		return func(f *FS, _ vfs.File, r vfs.Handle) error {
			x, _, _, err := f.Lookup(ctx, r, name)
			if err != nil {
				return err
			}
			return f.Sync(ctx, x)
		}
	}
	for _, c := range []struct {
		name, fail string
		do         func(f *FS, file vfs.File, r vfs.Handle) error
		verifier   bool // changes
	}{
		{"unstable write", "pwrite", write(vfs.Unstable), false},
		{"stable write, the write", "pwrite", write(vfs.FileSync), false},
		{"data-sync write", "fdatasync", write(vfs.DataSync), true},
		{"file-sync write", "fsync", write(vfs.FileSync), true},
		{"commit", "fsync", func(_ *FS, file vfs.File, _ vfs.Handle) error { return file.Commit(ctx, 0, 0, new(vfs.Written)) }, true},
		{"attributes", "fsync", sync("x"), true},
		{"names", "fsync", func(f *FS, _ vfs.File, r vfs.Handle) error { return f.Sync(ctx, r) }, false},
		{"a link", "syncfs", sync("link"), false},
		{"truncate", "ftruncate", func(_ *FS, file vfs.File, _ vfs.Handle) error { _, err := file.Truncate(ctx, 1); return err }, false},
		{"setting the size", "ftruncate", func(f *FS, _ vfs.File, r vfs.Handle) error {
			x, _, _, err := f.Lookup(ctx, r, "x")
			if err == nil {
				_, err = f.SetAttr(ctx, x, &vfs.SetAttr{Valid: vfs.MaskSize, Size: 2}, nil)
			}
			return err
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var sys faulty
			f := volatileFS(t, Options{Sys: &sys, Gate: narrow(t).Export("x")})
			r := root(t, f)
			file := openFile(t, f, mkfile(t, f, r, "x", "data"))
			if _, _, _, err := f.Create(ctx, r, "link", &vfs.CreateHow{Type: vfs.TypeSymlink, Target: "x"}); err != nil {
				t.Fatal(err)
			}
			verf := f.verifier()
			sys.breakDown(c.fail)
			wantErr(t, c.do(f, file, r), vfs.ErrIO)
			sys.breakDown("")
			if changed := f.verifier() != verf; changed != c.verifier {
				t.Errorf("the verifier has changed: %v, want %v", changed, c.verifier)
			}
			if err := c.do(f, file, r); err != nil {
				t.Errorf("once the disk is well again: %v", err)
			}
		})
	}
}

// TestCompanionsHearOfAnError: a call that has joined a sync that fails is told.
func TestCompanionsHearOfAnError(t *testing.T) {
	var sys faulty
	f := volatileFS(t, Options{Sys: &sys})
	file := openFile(t, f, mkfile(t, f, root(t, f), "x", "data"))
	sys.breakDown("fsync")
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() { wantErr(t, file.Commit(context.Background(), 0, 0, new(vfs.Written)), vfs.ErrIO) })
	}
	wg.Wait()
	sys.breakDown("")
}

// TestDirtIsBounded writes to more files than may be dirty. None of their
// descriptors is closed unsynced, and what is written stays what it is.
func TestDirtIsBounded(t *testing.T) {
	var sys failing
	g := narrow(t)
	f := volatileFS(t, Options{Sys: &sys, MaxOpen: 16, Gate: g.Export("x")})
	r := root(t, f)
	verf := f.verifier()
	var all []vfs.Handle
	for i := range 64 {
		all = append(all, mkfile(t, f, r, string(rune('0'+i)), "dirty"))
		if s := f.Snapshot(); s.Dirty > 16/dirtyShare || s.Open > 16 {
			t.Fatalf("after %d files %d descriptors are dirty, of %d", i, s.Dirty, s.Open)
		}
	}
	s := f.Snapshot()
	if s.Cleaned < 64-16/dirtyShare || f.verifier() != verf {
		t.Errorf("%d descriptors were synced to make room; the verifier changed: %v", s.Cleaned, f.verifier() != verf)
	}
	for _, x := range all {
		if got := content(t, f, x); got != "dirty" {
			t.Errorf("%q was written", got)
		}
	}
}
