package vfstest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// patience is the timeout of one subtest, also of the model. After it every call
// returns the context's error, and the subtest fails instead of hanging.
const patience = 2 * time.Minute

// tickMost is the slowest clock for which tick looks on: ticks of 10 ms (CONFIG_HZ=100), and some.
const tickMost = 50 * time.Millisecond

// old is a time long past: if an object's time is set to it and has then changed, the
// operation under test has changed it.
var old = time.Unix(1_000_000_000, 0)

// fixture is what the tests of a group share.
type fixture struct {
	group  *testing.T // outlives the subtests, as fs does
	config Config
	fs     vfs.FS
	root   vfs.Handle
	below  *bottom // of fs; nil: not known
}

func newFixture(t *testing.T, c Config) *fixture {
	t.Helper()
	x := &fixture{group: t, config: c, fs: c.New(t)}
	var err error
	if x.root, _, err = x.fs.Root(t.Context()); err != nil {
		t.Fatalf("root: %v", err)
	}
	return x
}

// env is what one test works with. Its methods end the test at the first failure, and
// are for the test's own goroutine.
type env struct {
	*testing.T
	*fixture
	ctx context.Context
	dir vfs.Handle // the test's own directory, empty
}

func newEnv(t *testing.T, x *fixture, name string) *env {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	e := &env{T: t, fixture: x, ctx: ctx}
	e.dir = e.mkdir(x.root, name)
	return e
}

// restart restarts what serves the FS, or skips the test if nothing can.
func (e *env) restart() {
	e.Helper()
	if e.config.Restart == nil {
		e.Skip("this file system is not restarted")
	}
	e.fs = e.config.Restart(e.group, e.fs)
	root, _, err := e.fs.Root(e.ctx)
	e.ok(err)
	e.root = root
}

func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatalf("unexpected error: %v", err)
	}
}

// wantStatus ends the test unless err has one of the statuses.
func (e *env) wantStatus(err error, want ...vfs.Status) {
	e.Helper()
	got, known := vfs.StatusOf(err)
	switch {
	case err == nil:
		e.Fatalf("no error, want %s", names(want))
	case !known:
		e.Fatalf("error %q has no status, want %s", err, names(want))
	case !slices.Contains(want, got):
		e.Fatalf("status %s (%v), want %s", got.Name(), err, names(want))
	}
}

func names(statuses []vfs.Status) string {
	all := make([]string, len(statuses))
	for i, s := range statuses {
		all[i] = s.Name()
	}
	return strings.Join(all, " or ")
}

// fileHow asks for a regular file of that mode, which must not exist yet.
func fileHow(mode uint32) *vfs.CreateHow { return how(vfs.TypeReg, mode) }

// how asks for an object of that type and mode, which must not exist yet.
func how(typ vfs.Type, mode uint32) *vfs.CreateHow {
	return &vfs.CreateHow{Type: typ, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode}}
}

// create makes what how says and returns its handle, which must not be zero.
func (e *env) create(dir vfs.Handle, name string, how *vfs.CreateHow) vfs.Handle {
	e.Helper()
	h, _, _, err := e.fs.Create(e.ctx, dir, name, how)
	if err != nil {
		e.Fatalf("create %s %q: %v", how.Type, name, err)
	}
	if h.IsZero() {
		e.Fatalf("create %s %q: no handle", how.Type, name)
	}
	return h
}

func (e *env) mkdir(dir vfs.Handle, name string) vfs.Handle {
	e.Helper()
	return e.create(dir, name, how(vfs.TypeDir, 0o755))
}

func (e *env) mkfile(dir vfs.Handle, name, content string) vfs.Handle {
	e.Helper()
	h := e.create(dir, name, fileHow(0o644))
	if content != "" {
		e.write(h, content, 0)
	}
	return h
}

func (e *env) symlink(dir vfs.Handle, name, target string) vfs.Handle {
	e.Helper()
	return e.create(dir, name, &vfs.CreateHow{Type: vfs.TypeSymlink, Target: target})
}

func (e *env) mustLookup(dir vfs.Handle, name string) vfs.Handle {
	e.Helper()
	h, _, _, err := e.fs.Lookup(e.ctx, dir, name)
	if err != nil {
		e.Fatalf("lookup %q: %v", name, err)
	}
	return h
}

// gone ends the test if dir has that name.
func (e *env) gone(dir vfs.Handle, name string) {
	e.Helper()
	_, _, _, err := e.fs.Lookup(e.ctx, dir, name)
	e.wantStatus(err, vfs.ErrNoEnt)
}

func (e *env) attr(h vfs.Handle) vfs.Attr {
	e.Helper()
	a, err := e.fs.GetAttr(e.ctx, h, vfs.MaskV3)
	e.ok(err)
	if missing := vfs.MaskV3 &^ a.Valid; missing != 0 {
		e.Fatalf("getattr left out %#x", missing)
	}
	return a
}

// same ends the test unless both handles name one object.
func (e *env) same(a, b vfs.Handle) {
	e.Helper()
	x, y := e.attr(a), e.attr(b)
	if x.FileID != y.FileID || x.FSID != y.FSID {
		e.Fatalf("file ids %d and %d, want one object", x.FileID, y.FileID)
	}
}

// wantNlink ends the test unless h has that many names.
func (e *env) wantNlink(h vfs.Handle, n uint32) {
	e.Helper()
	if got := e.attr(h).Nlink; got != n {
		e.Fatalf("nlink %d, want %d", got, n)
	}
}

// set changes attributes, which must be allowed.
func (e *env) set(h vfs.Handle, set vfs.SetAttr) {
	e.Helper()
	_, err := e.fs.SetAttr(e.ctx, h, &set, nil)
	e.ok(err)
}

// age sets the times of the objects far back.
func (e *env) age(all ...vfs.Handle) {
	e.Helper()
	for _, h := range all {
		e.set(h, vfs.SetAttr{Valid: vfs.MaskAtime | vfs.MaskMtime, Atime: old, Mtime: old})
		if a := e.attr(h); !a.Mtime.Equal(old) {
			e.Fatalf("mtime %v, want %v as set", a.Mtime, old)
		}
	}
}

// tick returns when the clock of the FS has moved on from a's ctime, after tickMost otherwise. Kernels before 6.13 stamp changes
// by a clock that ticks every 4 ms (CONFIG_HZ=250). Of two changes within a tick, NFSv3, whose Change is the ctime, tells
// nothing. An FS with a slower clock counts its changes.
func (e *env) tick(a *vfs.Attr) {
	e.Helper()
	for end := time.Now().Add(tickMost); time.Now().Before(end); {
		e.set(e.dir, vfs.SetAttr{Valid: vfs.MaskMtime, MtimeNow: true})
		if now := e.attr(e.dir); now.Ctime.After(a.Ctime) {
			return
		}
	}
}

// wantModified ends the test unless the data of all has changed since age.
func (e *env) wantModified(all ...vfs.Handle) {
	e.Helper()
	for i, h := range all {
		if a := e.attr(h); !a.Mtime.After(old) {
			e.Fatalf("mtime of object %d is still %v", i, a.Mtime)
		}
	}
}

// wantUnmodified ends the test if the data of any has changed since age.
func (e *env) wantUnmodified(all ...vfs.Handle) {
	e.Helper()
	for i, h := range all {
		if a := e.attr(h); !a.Mtime.Equal(old) {
			e.Fatalf("mtime of object %d has moved to %v", i, a.Mtime)
		}
	}
}
