package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// patience is how long the clients of these tests wait.
const patience = 5 * time.Second

// silentAfter answers n operations. Each later one fails when its caller's patience ends.
func silentAfter(n int64) func(context.Context, string, vfs.Handle) error {
	var ops atomic.Int64
	return func(ctx context.Context, _ string, _ vfs.Handle) error {
		if ops.Add(1) <= n {
			return ctx.Err()
		}
		select {
		case <-time.After(patience):
			return fmt.Errorf("the call: %w", vfs.ErrNoAnswer)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// manyFiles makes n files in d.
func manyFiles(tr *tree, n int) {
	for i := range n {
		tr.file(fmt.Sprintf("d%d/f%04d", i%7, i), 0o644, pattern(100, byte(i)))
	}
	tr.settle()
}

// TestCopySilent: a dead server, at either end, ends the job with one error when the patience
// of one call has ended, and not after each item.
func TestCopySilent(t *testing.T) {
	for _, end := range []string{"source", "destination"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
				manyFiles(src, 3000)
				from, to := src, dst
				if end == "source" {
					from = newTree(t, dying{src.fs, silentAfter(500)})
				} else {
					to = newTree(t, dying{dst.fs, silentAfter(500)})
				}
				o, v := options(t, from, to, "copy")
				start := time.Now()
				s, err := Copy(t.Context(), o)
				if !errors.Is(err, ErrSilent) || s.ExitCode(err) != ExitUnreachable || s.Errors > 0 || len(v.list) > 0 {
					t.Errorf("%v, %+v\n%s", err, s, v)
				}
				if took := time.Since(start); took > 2*patience+cleanupTime {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// cleanupTime is how long cleaning up may take beside a dead server (package transfer).
const cleanupTime = 10 * time.Second

// dying is a file system that may stop answering.
type dying struct {
	vfs.FS
	fault func(context.Context, string, vfs.Handle) error
}

func (f dying) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	if err := f.fault(ctx, "open", at.H); err != nil {
		return nil, vfs.Opened{}, err
	}
	return f.FS.Open(ctx, at, how)
}

func (f dying) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	if err := f.fault(ctx, "create", dir); err != nil {
		return vfs.Handle{}, vfs.Attr{}, vfs.WCC{}, err
	}
	return f.FS.Create(ctx, dir, name, how)
}

func (f dying) Rename(ctx context.Context, a vfs.Handle, an string, b vfs.Handle, bn string) (vfs.WCC, vfs.WCC, error) {
	if err := f.fault(ctx, "rename", a); err != nil {
		return vfs.WCC{}, vfs.WCC{}, err
	}
	return f.FS.Rename(ctx, a, an, b, bn)
}

// TestVerifySilent: a dead server ends a verification likewise.
func TestVerifySilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		manyFiles(src, 300)
		manyFiles(dst, 300)
		o, v := options(t, src, newTree(t, dying{dst.fs, silentAfter(50)}), "")
		s, err := Verify(t.Context(), VerifyOptions{Source: o.Source, Dest: o.Dest, Pool: o.Pool, Now: o.Now, Progress: o.Progress})
		if !errors.Is(err, ErrSilent) || s.ExitCode(err) != ExitUnreachable || s.Errors > 0 || s.Differences > 0 {
			t.Errorf("%v, %+v\n%s", err, s, v)
		}
	})
}

// TestCopyFull: a full disk, and a quota that is used up, end the job with one error.
func TestCopyFull(t *testing.T) {
	for _, why := range []error{vfs.ErrNoSpace, vfs.ErrQuota} {
		t.Run(why.Error(), func(t *testing.T) { copyFull(t, why) })
	}
}

func copyFull(t *testing.T, why error) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	manyFiles(src, 3000)
	var opens atomic.Int64
	full := dying{dst.fs, func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "open" && opens.Add(1) > 500 {
			return why
		}
		return nil
	}}
	o, v := options(t, src, newTree(t, full), "copy")
	s, err := Copy(t.Context(), o)
	var named *FullError
	if !errors.Is(err, why) || !errors.As(err, &named) || !strings.Contains(err.Error(), ": "+named.Path+": no room for its ") {
		t.Errorf("the file that found no room is not named with its size: %v", err)
	}
	// Files that had their space when the first failed still get done.
	if !errors.Is(err, ErrFull) || s.ExitCode(err) != ExitIncomplete || s.Errors > 0 || len(v.list) > 0 {
		t.Errorf("%v, %+v\n%s", err, s, v)
	}
	if n := opens.Load(); n > 500+maxFull+2*copyParallel {
		t.Errorf("%d files were tried", n)
	}
}

// TestCopyFullAtTheEdge: a full disk is one error, also if a later file found room, or the
// source ends before the job is broken off.
func TestCopyFullAtTheEdge(t *testing.T) {
	for name, full := range map[string]func(n int64) bool{
		"one finds room":       func(n int64) bool { return n > 50 && n != 60 && n != 65 },
		"the source ends":      func(n int64) bool { return n > 90 },
		"two at last":          func(n int64) bool { return n > 98 },
		"one finds room, ends": func(n int64) bool { return n > 80 && n != 90 },
	} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		manyFiles(src, 100)
		var opens atomic.Int64
		disk := dying{dst.fs, func(_ context.Context, op string, _ vfs.Handle) error {
			if op == "open" && full(opens.Add(1)) {
				return vfs.ErrNoSpace
			}
			return nil
		}}
		o, v := options(t, src, newTree(t, disk), "copy")
		o.Parallel = 1
		s, err := Copy(t.Context(), o)
		if !errors.Is(err, ErrFull) || s.ExitCode(err) != ExitIncomplete || s.Errors > 0 || len(v.list) > 0 {
			t.Errorf("%s: %v, %+v\n%s", name, err, s, v)
		}
	}
}

// TestCopyNoSpaceSometimes: if only some files find no space, all of these are reported as
// failures like any other.
func TestCopyNoSpaceSometimes(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	manyFiles(src, 300)
	var opens, refused atomic.Int64
	some := dying{dst.fs, func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "open" && opens.Add(1)%3 == 0 {
			refused.Add(1)
			return vfs.ErrNoSpace
		}
		return nil
	}}
	o, v := options(t, src, newTree(t, some), "copy")
	o.Parallel = 1
	s, err := Copy(t.Context(), o)
	if n := uint64(refused.Load()); err != nil || s.Errors != n || uint64(strings.Count(v.String(), "no space left")) != n || s.Files != 300-n {
		t.Errorf("%v, %+v, %d refused\n%s", err, s, n, v)
	}
}

// TestFullAgain: a resumed job finds the disk still full, and makes one error of it: skipped
// files take no room. The incomplete directory stays closed.
func TestFullAgain(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.dir("d")
	for i := range 16 {
		src.file(fmt.Sprintf("d/%d", i), 0o644, pattern(100, 1))
	}
	dir := recordDir(t)
	run := func(on *tree) (Summary, *events, error) {
		o, v := options(t, src, on, "copy")
		o.Record, o.ID, o.Parallel = dir, "this job", 1
		s, err := Copy(t.Context(), o)
		return s, v, err
	}
	if s, v, err := run(dst); s.ExitCode(err) != ExitDone {
		t.Fatalf("%v, %+v\n%s", err, s, v)
	}
	for i := range 8 { // every other one, and not the last
		src.write(src.at(fmt.Sprintf("d/%d", 2*i)), 0, []byte("changed"))
	}
	dst.set(dst.at("copy/d"), mode(0o700)) // as if it had never been finished
	full := newTree(t, dying{dst.fs, func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "open" {
			return vfs.ErrNoSpace
		}
		return nil
	}})
	s, v, err := run(full)
	if !errors.Is(err, ErrFull) || s.Errors > 0 || len(v.list) > 0 || s.Skipped != 8 || s.DirsClosed != 1 {
		t.Errorf("%v, %+v\n%s", err, s, v)
	}
	if a, err := dst.fs.GetAttr(t.Context(), dst.at("copy/d"), vfs.MaskMode); err != nil || a.Mode&0o777 != 0o700 {
		t.Errorf("mode %o, %v", a.Mode, err)
	}
	if s, v, err := run(dst); s.ExitCode(err) != ExitDone || s.DirsClosed != 0 {
		t.Errorf("when there is room: %v, %+v\n%s", err, s, v)
	}
	if d := diff(src.list(src.root), dst.list(dst.at("copy"))); d != "" {
		t.Error(d)
	}
}
