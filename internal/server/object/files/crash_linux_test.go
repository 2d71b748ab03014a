package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/vfs"
)

// crashSteps bounds the calls of the kernel of which each is the last in one life; changes that take
// more are an error of the test's.
const crashSteps = 200

// crashRig is a directory on a disk that forgets.
type crashRig struct {
	t    *testing.T
	base string
	seed uint64
	disk *sim.Disk
	fs   *localfs.FS
}

func newCrashRig(t *testing.T, seed uint64) *crashRig {
	t.Helper()
	c := &crashRig{t: t, base: inMemory(t), seed: seed}
	c.ok(os.Mkdir(filepath.Join(c.base, "root"), 0o700), os.Mkdir(filepath.Join(c.base, "state"), 0o700))
	var err error
	c.disk, err = sim.NewDisk(linux.OS{}, filepath.Join(c.base, "shadow"), seed)
	c.ok(err)
	c.start()
	return c
}

func (c *crashRig) ok(errs ...error) {
	c.t.Helper()
	if err := errors.Join(errs...); err != nil {
		c.t.Fatal(err)
	}
}

func (c *crashRig) start() {
	c.t.Helper()
	fs, err := localfs.New(filepath.Join(c.base, "root"), localfs.Options{
		Handles: localfs.HandlesMap, StateDir: filepath.Join(c.base, "state"), Sys: c.disk, Rand: sim.NewRand(c.seed).Fill,
	})
	c.ok(err)
	c.fs = fs
}

// crash takes the power, and starts anew.
func (c *crashRig) crash(loss sim.Loss) {
	c.t.Helper()
	c.disk.PowerOff(0)
	_ = vfs.CloseFS(c.fs) // without power it may well fail
	c.ok(c.disk.Crash(loss))
	c.start()
}

func (c *crashRig) end() { c.ok(vfs.CloseFS(c.fs), c.disk.Close()) }

// The changes of a life, in order, and what is there before.
var (
	crashLarge = string(bytes.Repeat([]byte("0123456789abcdef"), 10_000))
	crashPlan  = []struct{ key, before, after string }{ // "": none
		{"a/b/new", "", "a new object"},
		{"old", "as it was", crashLarge},
		{"gone", crashLarge, ""},
		{"a/b/next", "", crashLarge},
	}
)

// change makes changes until one fails, and returns how many were acknowledged.
func change(ctx context.Context, s *Store) int {
	for i, p := range crashPlan {
		var err error
		if p.after == "" {
			err = s.Delete(ctx, p.key)
		} else {
			_, err = s.Put(ctx, p.key, strings.NewReader(p.after), object.PutOptions{Size: -1, IfAbsent: p.before == ""})
		}
		if err != nil {
			return i
		}
	}
	return len(crashPlan)
}

// check compares what there is with what was acknowledged, and returns what is wrong.
func check(ctx context.Context, s *Store, acknowledged int) error {
	var errs []error
	for i, p := range crashPlan {
		got, err := content(ctx, s, p.key)
		switch absent := errors.Is(err, object.ErrNotExist); {
		case err != nil && !absent:
			errs = append(errs, err)
		case i < acknowledged && got != p.after, i > acknowledged && got != p.before, got != p.after && got != p.before:
			errs = append(errs, fmt.Errorf("%s has %d bytes, %.20q; %d changes were acknowledged", p.key, len(got), got, acknowledged))
		}
	}
	for info, err := range object.All(ctx, s, "") {
		if err == nil {
			_, err = content(ctx, s, info.Key)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// before puts what is there before.
func before(ctx context.Context, s *Store) error {
	for _, p := range crashPlan {
		if p.before != "" {
			if _, err := s.Put(ctx, p.key, strings.NewReader(p.before), object.PutOptions{Size: -1}); err != nil {
				return err
			}
		}
	}
	return nil
}

// life is one: changes over a file system that this makes of the directory, until the power goes.
func (c *crashRig) life(step int, over func(t *testing.T, f vfs.FS) vfs.FS) (acknowledged int) {
	ok := c.t.Run(fmt.Sprint("step=", step), func(t *testing.T) {
		f := over(t, c.fs)
		s, err := Open(t.Context(), f, rootOf(t, f), Options{Rand: sim.NewRand(c.seed).Fill})
		if err == nil {
			err = before(t.Context(), s)
		}
		if err != nil {
			t.Fatal(err)
		}
		if step >= 0 {
			c.disk.PowerOff(step)
		}
		acknowledged = change(t.Context(), s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if !ok {
		c.t.FailNow()
	}
	return acknowledged
}

// after checks what a crash has left.
func (c *crashRig) after(acknowledged int) error {
	s, err := Open(c.t.Context(), c.fs, rootOf(c.t, c.fs), Options{})
	if err != nil {
		return err
	}
	err = check(c.t.Context(), s, acknowledged)
	_, _, sweepErr := s.Sweep(c.t.Context(), farFuture)
	return errors.Join(err, sweepErr, s.Close())
}

// TestCrash takes the power at each call that the kernel gets for some changes, directly and over our
// server. What was acknowledged is there afterwards, what was not is there whole or not at all.
func TestCrash(t *testing.T) {
	for name, over := range map[string]func(t *testing.T, f vfs.FS) vfs.FS{
		"localfs":  func(_ *testing.T, f vfs.FS) vfs.FS { return f },
		"loopback": func(t *testing.T, f vfs.FS) vfs.FS { return dial(t, "nfs://"+serve(t, f)+"/?retrans=1").FS() },
	} {
		for _, loss := range []sim.Loss{sim.LoseAll, sim.LoseSome} {
			t.Run(fmt.Sprint(name, "/loss=", loss), func(t *testing.T) {
				stride := 1
				if testing.Short() || need.Race {
					stride = 11
				}
				for step := 0; ; step += stride {
					if step > crashSteps {
						t.Fatalf("it takes more than %d calls", crashSteps)
					}
					c := newCrashRig(t, uint64(step))
					acknowledged := c.life(step, over)
					c.crash(loss)
					if err := c.after(acknowledged); err != nil {
						t.Errorf("step %d, %d changes acknowledged: %v", step, acknowledged, err)
					}
					c.end()
					if acknowledged == len(crashPlan) || t.Failed() {
						break
					}
				}
			})
		}
	}
}

// TestCrashMissingSync leaves out what makes things stable, one place after the other: each time something that was
// acknowledged is lost. Else TestCrash would not notice if somebody took that call away.
func TestCrashMissingSync(t *testing.T) {
	for _, site := range []string{"write", "commit", "(*temp).publish", "(*Store).remove", "(*Store).step"} {
		t.Run(site, func(t *testing.T) {
			c := newCrashRig(t, 1)
			defer c.end()
			lazy := &lazyFS{FS: c.fs}
			if n := c.life(-1, func(*testing.T, vfs.FS) vfs.FS { return lazy }); n != len(crashPlan) {
				t.Fatalf("%d changes", n)
			}
			if lazy.seen[site] == 0 {
				t.Fatalf("nothing is made stable in %s, but %v", site, lazy.seen)
			}
			c.crash(sim.LoseAll)
			if err := c.after(len(crashPlan)); err != nil {
				t.Fatalf("with all of them: %v", err)
			}

			d := newCrashRig(t, 1)
			defer d.end()
			n := d.life(-1, func(*testing.T, vfs.FS) vfs.FS { return &lazyFS{FS: d.fs, skip: site} })
			d.crash(sim.LoseAll)
			if err := d.after(n); err == nil {
				t.Errorf("%s can be left out, and nobody notices", site)
			}
		})
	}
}

// lazyFS leaves out what makes things stable in one place.
type lazyFS struct {
	vfs.FS
	skip string
	seen map[string]int
}

func (f *lazyFS) left(site string) bool {
	if f.seen == nil {
		f.seen = make(map[string]int)
	}
	f.seen[site]++
	return site == f.skip
}

// Sync implements vfs.Syncer.
func (f *lazyFS) Sync(ctx context.Context, h vfs.Handle) error {
	if f.left(callerOf()) {
		return nil
	}
	return f.FS.(vfs.Syncer).Sync(ctx, h)
}

// callerOf is the function of the store for which a sync is made.
func callerOf() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		_, name, _ := strings.Cut(f.Function, "/object/files.")
		if name, _, _ = strings.Cut(name, ".func"); name != "" && name != "(*Store).sync" {
			return name
		}
		if !more {
			return "nowhere"
		}
	}
}

func (f *lazyFS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	file, o, err := f.FS.Open(ctx, at, how)
	if err != nil {
		return nil, o, err
	}
	return &lazyFile{File: file, fs: f}, o, nil
}

type lazyFile struct {
	vfs.File
	fs *lazyFS
}

func (f *lazyFile) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	lie := how != vfs.Unstable && f.fs.left("write")
	if lie {
		how = vfs.Unstable
	}
	n, err := f.File.WriteAt(ctx, p, off, how, w)
	if lie {
		w.Committed = vfs.FileSync
	}
	return n, err
}

func (f *lazyFile) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	if !f.fs.left("commit") {
		return f.File.Commit(ctx, off, n, w)
	}
	_, err := f.File.WriteAt(ctx, nil, 0, vfs.Unstable, w)
	return err
}
