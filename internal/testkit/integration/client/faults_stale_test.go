package client

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// use is an operation on a file, a directory, or an open file.
type use struct {
	name string
	op   string // what memfs calls it
	do   func(ctx context.Context, f vfs.FS, file, dir vfs.Handle, open vfs.File) error
}

var uses = []use{
	{"GETATTR", "getattr", func(ctx context.Context, f vfs.FS, file, _ vfs.Handle, _ vfs.File) error {
		_, err := f.GetAttr(ctx, file, vfs.MaskV3)
		return err
	}},
	{"SETATTR", "setattr", func(ctx context.Context, f vfs.FS, file, _ vfs.Handle, _ vfs.File) error {
		_, err := f.SetAttr(ctx, file, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}, nil)
		return err
	}},
	{"ACCESS", "access", func(ctx context.Context, f vfs.FS, file, _ vfs.Handle, _ vfs.File) error {
		_, _, err := f.Access(ctx, file, vfs.AccessRead)
		return err
	}},
	{"READ", "read", func(ctx context.Context, _ vfs.FS, _, _ vfs.Handle, open vfs.File) error {
		_, _, err := vfs.ReadFull(ctx, open, make([]byte, 4096), 0)
		return err
	}},
	{"WRITE", "write", func(ctx context.Context, _ vfs.FS, _, _ vfs.Handle, open vfs.File) error {
		_, err := vfs.WriteFull(ctx, open, []byte("x"), 0, vfs.FileSync, new(vfs.Written))
		return err
	}},
	{"WRITE and COMMIT", "commit", func(ctx context.Context, _ vfs.FS, _, _ vfs.Handle, open vfs.File) error {
		if _, err := vfs.WriteFull(ctx, open, []byte("x"), 0, vfs.Unstable, new(vfs.Written)); err != nil {
			return err
		}
		return open.Commit(ctx, 0, 0, new(vfs.Written))
	}},
	{"LOOKUP", "lookup", func(ctx context.Context, f vfs.FS, _, dir vfs.Handle, _ vfs.File) error {
		_, _, _, err := f.Lookup(ctx, dir, "x")
		return err
	}},
	{"READDIRPLUS", "readdir", func(ctx context.Context, f vfs.FS, _, dir vfs.Handle, _ vfs.File) error {
		_, err := names(ctx, f, dir)
		return err
	}},
	{"CREATE", "create", func(ctx context.Context, f vfs.FS, _, dir vfs.Handle, _ vfs.File) error {
		_, _, _, err := f.Create(ctx, dir, "new", &vfs.CreateHow{Type: vfs.TypeReg})
		return err
	}},
	{"MKDIR", "create", func(ctx context.Context, f vfs.FS, _, dir vfs.Handle, _ vfs.File) error {
		_, _, _, err := f.Create(ctx, dir, "new", &vfs.CreateHow{Type: vfs.TypeDir})
		return err
	}},
	{"LINK", "link", func(ctx context.Context, f vfs.FS, file, dir vfs.Handle, _ vfs.File) error {
		_, _, err := f.Link(ctx, file, dir, "new")
		return err
	}},
	{"REMOVE", "remove", func(ctx context.Context, f vfs.FS, _, dir vfs.Handle, _ vfs.File) error {
		_, err := f.Remove(ctx, dir, "x", false)
		return err
	}},
	{"RENAME", "rename", func(ctx context.Context, f vfs.FS, _, dir vfs.Handle, _ vfs.File) error {
		_, _, err := f.Rename(ctx, dir, "x", dir, "new")
		return err
	}},
}

// inUse has a file and a directory, and the file opened.
func inUse(t *testing.T, f *faulty) (file, dir vfs.Handle, open vfs.File) {
	t.Helper()
	put(t, f.at, "dir/x", nil)
	put(t, f.at, "file", pattern(1, 1, 0, 8192))
	var err error
	if dir, _, _, err = f.fs.Lookup(t.Context(), f.root, "dir"); err != nil {
		t.Fatal(err)
	}
	if file, _, _, err = f.fs.Lookup(t.Context(), f.root, "file"); err != nil {
		t.Fatal(err)
	}
	if open, _, err = f.fs.Open(t.Context(), vfs.At{H: file}, &vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite}); err != nil {
		t.Fatal(err)
	}
	return file, dir, open
}

// TestStale has the server forget what the client holds handles of: each use is
// vfs.ErrStale, at once and without a second try.
func TestStale(t *testing.T) {
	const few = 4 // RPCs
	for _, u := range uses {
		t.Run(u.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := inMemory(t, memfs.New(memfs.Options{Mode: 0o777}), 1, "")
				file, dir, open := inUse(t, f)
				root, _, err := f.at.Root(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				own, _, _, err := f.at.Lookup(t.Context(), root, "dir")
				if err != nil {
					t.Fatal(err)
				}
				for _, gone := range []struct {
					in    vfs.Handle
					name  string
					isDir bool
				}{{own, "x", false}, {root, "dir", true}, {root, "file", false}} {
					if _, err := f.at.Remove(t.Context(), gone.in, gone.name, gone.isDir); err != nil {
						t.Fatal(err)
					}
				}
				before, start := f.p.Stats().Calls, time.Now()
				if err := u.do(t.Context(), f.fs, file, dir, open); !errors.Is(err, vfs.ErrStale) {
					t.Errorf("%v", err)
				}
				if took, calls := time.Since(start), f.p.Stats().Calls-before; took > time.Second || calls > few {
					t.Errorf("took %v and %d calls", took, calls)
				}
				_ = open.Close(t.Context()) // it may say once more that a write failed
			})
		})
	}
}

// jukebox is a memfs that is busy.
type jukebox struct {
	*memfs.FS
	op   atomic.Pointer[string]
	left atomic.Int64 // answers of ErrBusy
}

func newJukebox() *jukebox {
	j := new(jukebox)
	j.FS = memfs.New(memfs.Options{Mode: 0o777, Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if busy := j.op.Load(); busy != nil && op == *busy && j.left.Add(-1) >= 0 {
			return vfs.ErrBusy
		}
		return nil
	}})
	return j
}

func (j *jukebox) busy(op string, times int64) {
	j.left.Store(times)
	j.op.Store(&op)
}

// TestJukebox has the server answer NFS3ERR_JUKEBOX three times: the client waits, each time
// for another while, and the caller gets no error.
func TestJukebox(t *testing.T) {
	for _, u := range uses {
		t.Run(u.name, func(t *testing.T) {
			took := make(map[time.Duration]bool)
			for _, seed := range seeds(t, 3) {
				synctest.Test(t, func(t *testing.T) {
					at := newJukebox()
					f := inMemory(t, at, seed, "")
					file, dir, open := inUse(t, f)
					at.busy(u.op, 3)
					start := time.Now()
					if err := u.do(t.Context(), f.fs, file, dir, open); err != nil {
						t.Errorf("seed %d: %v", seed, err)
					}
					d := time.Since(start)
					if d < 100*time.Millisecond || d > time.Minute {
						t.Errorf("seed %d: three pauses took %v", seed, d)
					}
					if at.left.Load() > 0 {
						t.Errorf("seed %d: not asked often enough", seed)
					}
					took[d] = true
					if err := open.Close(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			if len(took) == 1 && len(seeds(t, 3)) > 1 {
				t.Errorf("pauses without chance: %v", took)
			}
		})
	}
}

// TestJukeboxCancelled ends the caller's context in a pause.
func TestJukeboxCancelled(t *testing.T) {
	for _, u := range uses {
		t.Run(u.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				at := newJukebox()
				f := inMemory(t, at, 1, "")
				file, dir, open := inUse(t, f)
				at.busy(u.op, 1<<40)
				ctx, cancel := context.WithTimeout(t.Context(), 1234*time.Millisecond)
				defer cancel()
				start := time.Now()
				err := u.do(ctx, f.fs, file, dir, open)
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v", err)
				}
				if took := time.Since(start); took > 2*time.Second {
					t.Errorf("took %v", took)
				}
				at.busy("", 0)
				_ = open.Close(t.Context()) // a COMMIT that was cancelled may have failed the file
			})
		})
	}
}
