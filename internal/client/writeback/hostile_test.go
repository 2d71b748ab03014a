package writeback

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestCloseWhileWriting: what a WriteAt has accepted that was in progress when
// Close was called is stable when Close has returned.
func TestCloseWhileWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memfs.Options{WriteMax: 4096}, Options{})
		f, h := r.open("f", vfs.OpenHow{})
		let := make(chan struct{})
		r.setFault(func(_ context.Context, op string) error {
			if op == "write" {
				<-let
			}
			return nil
		})
		r.write(f, 0, pattern(4096))
		var wg sync.WaitGroup
		wg.Go(func() { r.write(f, 0, []byte("later")) }) // waits for the WRITE there
		synctest.Wait()
		wg.Go(func() {
			if err := f.Close(t.Context()); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
		synctest.Wait()
		close(let)
		wg.Wait()
		want := pattern(4096)
		copy(want, "later")
		r.wantBelow(h, want)
	})
}

// TestCloseDoesNotWaitForOthers: a Close that gives up does not wait for calls of
// the same file that have more time, and wait for others.
func TestCloseDoesNotWaitForOthers(t *testing.T) {
	for name, call := range map[string]func(r *rig, f vfs.File) error{
		"Commit":   func(r *rig, f vfs.File) error { return r.commit(f) },
		"Truncate": func(r *rig, f vfs.File) error { _, err := f.Truncate(r.t.Context(), 0); return err },
		"WriteAt": func(r *rig, f vfs.File) error {
			_, err := f.WriteAt(r.t.Context(), []byte("x"), 0, vfs.Unstable, new(vfs.Written))
			return err
		},
		"WriteAt without room": func(r *rig, f vfs.File) error {
			_, err := f.WriteAt(r.t.Context(), pattern(64<<10), 1<<20, vfs.Unstable, new(vfs.Written))
			return err
		},
		"stable WriteAt": func(r *rig, f vfs.File) error {
			_, err := f.WriteAt(r.t.Context(), []byte("x"), 0, vfs.FileSync, new(vfs.Written))
			return err
		},
		"NextData": func(r *rig, f vfs.File) error {
			_, err := f.(vfs.HoleSeeker).NextData(r.t.Context(), 0)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, memfs.Options{WriteMax: 4096}, Options{MaxDirty: 32 << 10})
				f, _ := r.open("f", vfs.OpenHow{})
				g, _ := r.open("f", vfs.OpenHow{})
				r.setFault(func(context.Context, string) error { return vfs.ErrBusy })
				r.write(g, 0, pattern(4096))
				var wg sync.WaitGroup
				wg.Go(func() {
					if err := call(r, f); err == nil {
						t.Error("the call has succeeded")
					}
				})
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				_ = f.Close(ctx) // whether f has bytes of its own differs
				if took := time.Since(start); took != time.Second {
					t.Errorf("Close took %v", took)
				}
				wg.Wait()
				r.setFault(nil)
				r.ok(g.Close(t.Context()))
			})
		})
	}
}

// TestLateCommitError: the server tells once that it could not store something. It
// is heard, though the caller that asked has gone.
func TestLateCommitError(t *testing.T) {
	for _, close := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, memfs.Options{}, Options{})
			f, _ := r.open("f", vfs.OpenHow{})
			g, _ := r.open("f", vfs.OpenHow{})
			r.setFault(func(ctx context.Context, op string) error {
				if op != "commit" || r.count("commit") > 1 {
					return nil
				}
				select {
				case <-ctx.Done(): // the answer and the end come together
				case <-time.After(2 * time.Second):
				}
				return vfs.ErrIO
			})
			r.write(f, 0, []byte("abc"))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if close {
				if err := f.Close(ctx); !errors.Is(err, vfs.ErrIO) {
					t.Errorf("Close: %v", err)
				}
			} else if err := f.Commit(ctx, 0, 0, new(vfs.Written)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Commit: %v", err)
			}
			time.Sleep(2 * time.Second)
			if err := r.commit(g); !errors.Is(err, vfs.ErrIO) {
				t.Errorf("Commit of the other file: %v", err)
			}
			if !close {
				if err := f.Close(t.Context()); !errors.Is(err, vfs.ErrIO) {
					t.Errorf("Close: %v", err)
				}
			}
			if err := g.Close(t.Context()); !errors.Is(err, vfs.ErrIO) {
				t.Errorf("Close of the other file: %v", err)
			}
		})
	}
}

// TestLateWriteError: likewise for a WRITE that is refused while Close gives up.
func TestLateWriteError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memfs.Options{}, Options{})
		f, _ := r.open("f", vfs.OpenHow{})
		r.setFault(func(ctx context.Context, op string) error {
			if op == "write" {
				<-ctx.Done()
				return vfs.ErrNoSpace
			}
			return nil
		})
		r.write(f, 0, []byte("abc"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Close(ctx); !errors.Is(err, vfs.ErrNoSpace) {
			t.Errorf("Close: %v", err)
		}
		if s := r.fs.Stats(); s.BytesLost != 3 {
			t.Errorf("%+v", s)
		}
	})
}

// TestTruncateAmongWrites: a caller that goes on writing does not keep others from changing
// the size.
func TestTruncateAmongWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFar(t, 10*ms, 100e6, Options{})
		f, h := r.open("f", vfs.OpenHow{})
		g, _ := r.open("f", vfs.OpenHow{})
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			p := pattern(unit)
			for off := uint64(0); off < 1<<30; off += unit {
				select {
				case <-stop:
					return
				default:
					r.write(f, off%(256<<20), p)
					time.Sleep(ms)
				}
			}
		})
		time.Sleep(100 * ms)
		start := time.Now()
		if _, err := g.Truncate(t.Context(), 0); err != nil {
			t.Error(err)
		}
		if _, err := r.fs.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskSize}, nil); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("it took %v", took)
		}
		close(stop)
		wg.Wait()
		r.ok(f.Close(t.Context()))
		r.ok(g.Close(t.Context()))
	})
}

// TestUseAfterCloseFS: a file that is opened while the file system is closed accepts
// nothing.
func TestUseAfterCloseFS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFar(t, ms, 100e6, Options{})
		f, _ := r.open("f", vfs.OpenHow{})
		r.ok(r.fs.Close())
		for _, name := range []string{"f", "g"} {
			g, _ := r.open(name, vfs.OpenHow{})
			if n, err := g.WriteAt(t.Context(), []byte("x"), 0, vfs.Unstable, new(vfs.Written)); n != 0 || !errors.Is(err, vfs.ErrInval) {
				t.Errorf("%s: %d, %v", name, n, err)
			}
			if err := g.Close(t.Context()); !errors.Is(err, vfs.ErrInval) {
				t.Errorf("%s: Close: %v", name, err)
			}
		}
		if err := f.Close(t.Context()); !errors.Is(err, vfs.ErrInval) {
			t.Errorf("Close: %v", err)
		}
	})
}

// TestCloseFSDuringCommit: the COMMIT has ended when Close closes what is below.
func TestCloseFSDuringCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memfs.Options{}, Options{})
		f, _ := r.open("f", vfs.OpenHow{})
		var mu sync.Mutex
		committing := false
		set := func(to bool) {
			mu.Lock()
			defer mu.Unlock()
			committing = to
		}
		r.setFault(func(ctx context.Context, op string) error {
			if op == "commit" {
				set(true)
				<-ctx.Done()
				time.Sleep(time.Second)
				set(false)
				return ctx.Err()
			}
			return nil
		})
		r.write(f, 0, []byte("abc"))
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := r.commit(f); !errors.Is(err, vfs.ErrInval) {
				t.Errorf("Commit: %v", err)
			}
		})
		synctest.Wait()
		if err := r.fs.Close(); !errors.Is(err, vfs.ErrIO) {
			t.Errorf("Close: %v", err)
		}
		mu.Lock()
		if committing {
			t.Error("a COMMIT is in flight after Close")
		}
		mu.Unlock()
		wg.Wait()
		_ = f.Close(t.Context()) // which has nothing to add
	})
}

// renamer is an FS where somebody else acts between a look-up and what comes next.
type renamer struct {
	vfs.FS
	between func()
}

func (r *renamer) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	h, attr, dirAttr, err := r.FS.Lookup(ctx, dir, name)
	if r.between != nil {
		r.between()
	}
	return h, attr, dirAttr, err
}

// TestRenameBeforeTruncate: a file that somebody moves out of the way before an
// open cuts what has that name keeps its dirty bytes.
func TestRenameBeforeTruncate(t *testing.T) {
	ctx := t.Context()
	r := newRig(t, memfs.Options{}, Options{})
	root, _, err := r.below.Root(ctx)
	r.ok(err)
	f, h := r.open("f", vfs.OpenHow{})
	data := bytes.Repeat([]byte("data"), 1000)
	r.write(f, 0, data)
	r.over(&renamer{FS: r.below, between: func() {
		if _, _, err := r.below.Rename(ctx, root, "f", root, "g"); err != nil {
			t.Error(err)
		}
	}})
	g, _ := r.open("f", vfs.OpenHow{Trunc: true})
	r.ok(g.Close(ctx))
	r.below.Restart()
	r.ok(f.Close(ctx))
	r.wantBelow(h, data)
}
