package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// hooks sees every operation of a memfs, and may fail it.
type hooks struct {
	mu sync.Mutex
	n  int
	// do is called with the operation's number, from 1.
	do func(n int, op string, h vfs.Handle) error
}

func (k *hooks) fault(ctx context.Context, op string, h vfs.Handle) error {
	k.mu.Lock()
	k.n++
	n, do := k.n, k.do
	k.mu.Unlock()
	if do != nil {
		if err := do(n, op, h); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// set restarts the count.
func (k *hooks) set(do func(n int, op string, h vfs.Handle) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.n, k.do = 0, do
}

func (k *hooks) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.n
}

// failAt fails the n'th operation.
func failAt(at int) func(int, string, vfs.Handle) error {
	return func(n int, _ string, _ vfs.Handle) error {
		if n == at {
			return vfs.ErrIO
		}
		return nil
	}
}

// failsFrom fails the n'th operation, and then the same operation on the same object: the
// caller may try it again.
func failsFrom(at int) func(int, string, vfs.Handle) error {
	var mu sync.Mutex
	var failed string
	return func(n int, op string, h vfs.Handle) error {
		mu.Lock()
		defer mu.Unlock()
		this := op + " " + h.String()
		if n == at {
			failed = this
		}
		if this == failed {
			return vfs.ErrIO
		}
		return nil
	}
}

// diesAt fails the n'th operation and all that follow, as for a killed process: nothing is
// cleaned up.
func diesAt(at int) func(int, string, vfs.Handle) error {
	return func(n int, _ string, _ vfs.Handle) error {
		if n >= at {
			return errDead
		}
		return nil
	}
}

var errDead = errors.New("the process is dead")

// temps are the temporaries in the tree.
func (tr *tree) temps() (found []string) {
	tr.t.Helper()
	tr.each("", tr.root, func(path string, _ vfs.Handle, _ vfs.Attr) {
		if i := strings.LastIndexByte(path, '/'); strings.HasPrefix(path[i+1:], ".nfsbox-") {
			found = append(found, path)
		}
	})
	return found
}

// whole fails for every file under dst that differs from the source's of that path, and for
// temporaries.
func whole(t *testing.T, what string, src, dst *tree, name string) {
	t.Helper()
	want, got := src.list(src.root), map[string]string{}
	if r, err := vfs.Resolve(context.Background(), dst.fs, dst.root, name, false); err == nil {
		got = dst.list(r.Handle)
	}
	for path, s := range got {
		w, _, _ := strings.Cut(want[path], " linked to ")
		g, _, _ := strings.Cut(s, " linked to ")
		if strings.HasPrefix(s, "file") && g != w {
			t.Errorf("%s: %q is %.200s, want %.200s", what, path, s, want[path])
		}
	}
	if temps := dst.temps(); len(temps) > 0 {
		t.Errorf("%s: left behind: %q", what, temps)
	}
}

// few puts some objects of each kind into tr.
func few(tr *tree) {
	tr.link(tr.file("a", 0o644, pattern(300_000, 1)), "d/b")
	tr.file("d/c", 0o600, pattern(10, 2))
	tr.make("d/l", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "../a"})
	tr.make("e/p", vfs.CreateHow{Type: vfs.TypeFIFO, Set: mode(0o600)})
	for i := range 5 {
		tr.file(fmt.Sprintf("e/f%d", i), 0o640, pattern(i*1000, byte(i)))
	}
	tr.settle()
}

// syncing is a file system with a Syncer that knows which names and attributes are unstable.
type syncing struct {
	vfs.FS
	fail error // of Sync

	mu    sync.Mutex
	dirty map[vfs.Handle][]string
	syncs int
}

func newSyncing(f vfs.FS) *syncing { return &syncing{FS: f, dirty: make(map[vfs.Handle][]string)} }

func (f *syncing) mark(h vfs.Handle, what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dirty[h] = append(f.dirty[h], what)
}

func (f *syncing) Sync(_ context.Context, h vfs.Handle) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.syncs++
	if f.fail != nil {
		return f.fail
	}
	delete(f.dirty, h)
	return nil
}

func (f *syncing) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	h, a, w, err := f.FS.Create(ctx, dir, name, how)
	if err == nil {
		f.mark(dir, "create "+name)
		f.mark(h, "made")
	}
	return h, a, w, err
}

func (f *syncing) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	file, o, err := f.FS.Open(ctx, at, how)
	if err == nil && how.Create != nil {
		f.mark(at.Dir, "create "+at.Name)
		f.mark(o.H, "made")
		file = &syncedFile{file, f, o.H}
	}
	return file, o, err
}

// syncedFile is a file whose commit covers its attributes.
type syncedFile struct {
	vfs.File
	fs *syncing
	h  vfs.Handle
}

func (f *syncedFile) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	err := f.File.Commit(ctx, off, n, w)
	if err == nil {
		f.fs.mu.Lock()
		delete(f.fs.dirty, f.h)
		f.fs.mu.Unlock()
	}
	return err
}

func (f *syncing) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	w, err := f.FS.SetAttr(ctx, h, set, guard)
	if err == nil {
		f.mark(h, "setattr")
	}
	return w, err
}

func (f *syncing) Link(ctx context.Context, h, dir vfs.Handle, name string) (vfs.Attr, vfs.WCC, error) {
	a, w, err := f.FS.Link(ctx, h, dir, name)
	if err == nil {
		f.mark(dir, "link "+name)
	}
	return a, w, err
}

func (f *syncing) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	h, _, _, _ := f.FS.Lookup(ctx, dir, name)
	w, err := f.FS.Remove(ctx, dir, name, isDir)
	if err == nil {
		f.mu.Lock()
		delete(f.dirty, h) // a removed object cannot be lost
		f.mu.Unlock()
		f.mark(dir, "remove "+name)
	}
	return w, err
}

func (f *syncing) Rename(ctx context.Context, a vfs.Handle, an string, b vfs.Handle, bn string) (vfs.WCC, vfs.WCC, error) {
	from, to, err := f.FS.Rename(ctx, a, an, b, bn)
	if err == nil {
		f.mark(a, "rename "+an)
		f.mark(b, "rename to "+bn)
	}
	return from, to, err
}

// unsynced is what a power failure would lose.
func (f *syncing) unsynced() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, what := range f.dirty {
		all = append(all, what...)
	}
	slices.Sort(all)
	return all
}
