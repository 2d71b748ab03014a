package walk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestTree walks a random tree, wide enough for suspensions, by one and by many.
func TestTree(t *testing.T) {
	f := memfs.New(memfs.Options{})
	r := rand.New(rand.NewPCG(1, 2))
	dirs, want := []string{""}, []string{"."}
	var wantFiles []string
	var paths []string
	for i := range 3000 {
		parent := dirs[0] // a third of all in the root: more than queuedPerDir
		if i%3 > 0 {
			parent = dirs[r.IntN(len(dirs))]
		}
		path := parent + fmt.Sprint(i)
		if i%5 < 2 {
			dirs, want, paths = append(dirs, path+"/"), append(want, path), append(paths, path+"/")
			continue
		}
		wantFiles, paths = append(wantFiles, path), append(paths, path)
	}
	build(t, f, paths...)
	for _, parallel := range []int{1, 2, 16} {
		l := newLog(t)
		if err := l.walk(f, Options{Parallel: parallel}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(sorted(l.entered), sorted(want)) || !slices.Equal(sorted(l.left), sorted(want)) {
			t.Errorf("parallel %d: %d directories entered and %d left, want %d", parallel, len(l.entered), len(l.left), len(want))
		}
		if !slices.Equal(sorted(l.entries), sorted(wantFiles)) {
			t.Errorf("parallel %d: %d entries, want %d", parallel, len(l.entries), len(wantFiles))
		}
		if len(l.faults)+len(l.incomplete) > 0 {
			t.Errorf("parallel %d: faults %v, incomplete %v", parallel, l.faults, l.incomplete)
		}
	}
}

// TestListed: the end of the listings is told once, when every entry was visited, while the
// last directories are still held.
func TestListed(t *testing.T) {
	f := memfs.New(memfs.Options{})
	build(t, f, "a/", "a/b/", "a/b/c", "a/d", "e/", "f")
	for _, parallel := range []int{1, 16} {
		l := newLog(t)
		var told atomic.Int64
		v := &holding{log: l}
		o := Options{Parallel: parallel, Listed: func() {
			told.Add(1)
			l.mu.Lock()
			entered, entries, left := len(l.entered), len(l.entries), len(l.left)
			l.mu.Unlock()
			if entered != 4 || entries != 3 || left != 0 {
				t.Errorf("parallel %d: told with %d directories entered and %d left, and %d entries", parallel, entered, left, entries)
			}
			v.release()
		}}
		root, _, err := f.Root(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := Tree(t.Context(), f, root, o, v); err != nil || told.Load() != 1 {
			t.Errorf("parallel %d: %v; told %d times", parallel, err, told.Load())
		}
	}
}

// holding holds every directory until release.
type holding struct {
	*log
	held []*Dir
}

func (h *holding) Enter(ctx context.Context, d *Dir) error {
	d.Hold()
	h.mu.Lock()
	h.held = append(h.held, d)
	h.mu.Unlock()
	return h.log.Enter(ctx, d)
}

func (h *holding) release() {
	h.mu.Lock()
	held := h.held
	h.mu.Unlock()
	for _, d := range held {
		d.Release()
	}
}

// TestRequests counts what a walk asks for: the pages of the listings and the
// root's attributes.
func TestRequests(t *testing.T) {
	var mu sync.Mutex
	ops := map[string]int{}
	f := memfs.New(memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		mu.Lock()
		defer mu.Unlock()
		ops[op]++
		return nil
	}})
	build(t, f, "a/", "a/b/", "a/b/f", "a/g", "c/", "h")
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	clear(ops)
	if err := Tree(t.Context(), f, root, Options{}, newLog(t)); err != nil {
		t.Fatal(err)
	}
	if ops["getattr"] != 1 || ops["lookup"]+ops["access"] != 0 || len(ops) != 2 {
		t.Errorf("a walk asked for %v", ops)
	}
}

// TestQueueBound walks many directories in one, and looks how many wait.
func TestQueueBound(t *testing.T) {
	const dirs = 100_000
	resumed := atomic.Int64{}
	f := invented(func(dir uint64, from vfs.Pos) iter.Seq2[*vfs.Entry, error] {
		return func(yield func(*vfs.Entry, error) bool) {
			if dir != 1 {
				return
			}
			resumed.Add(1)
			for i := from.Cookie; i < dirs; i++ {
				if !yield(entry(fmt.Sprint(i), 10+i, vfs.TypeDir, i+1), nil) {
					return
				}
			}
		}
	})
	most := 0
	l := newLog(t)
	l.onEnter = func(d *Dir) error {
		d.w.mu.Lock()
		defer d.w.mu.Unlock()
		most = max(most, len(d.w.stack))
		return nil
	}
	if err := l.walk(f, Options{Parallel: 4}); err != nil {
		t.Fatal(err)
	}
	if len(l.left) != dirs+1 {
		t.Errorf("%d directories, want %d", len(l.left), dirs+1)
	}
	if most > queuedPerDir+1 {
		t.Errorf("%d directories waited, want at most %d", most, queuedPerDir+1)
	}
	if n := resumed.Load(); n > 1+dirs/queuedPerDir {
		t.Errorf("the listing was taken up %d times", n)
	}
}

// TestBigDirectory lists a directory much larger than memory allowed for it.
func TestBigDirectory(t *testing.T) {
	const entries = 400_000
	f := invented(func(_ uint64, from vfs.Pos) iter.Seq2[*vfs.Entry, error] { return files(from.Cookie, entries) })
	count := 0
	v := counter{func() { count++ }}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := Tree(t.Context(), f, handle(1), Options{}, v); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if count != entries {
		t.Errorf("%d entries, want %d", count, entries)
	}
	// The test's own handle of each entry is one allocation of 8 bytes; the
	// hashes for a restart grow to 512 KiB.
	if n := after.Mallocs - before.Mallocs; n > entries*3 {
		t.Errorf("%d allocations for %d entries", n, entries)
	}
}

// counter is a Visitor that counts entries.
type counter struct{ entry func() }

func (counter) Enter(context.Context, *Dir) error                          { return nil }
func (c counter) Entry(context.Context, *Dir, *vfs.Entry) error            { c.entry(); return nil }
func (counter) Fault(_ context.Context, _ *Dir, _ string, err error) error { return err }
func (counter) Leave(context.Context, *Dir, error) error                   { return nil }

// chain is a file system of directories each of which holds one, without end.
func chain() *hooked {
	return invented(func(dir uint64, from vfs.Pos) iter.Seq2[*vfs.Entry, error] {
		return func(yield func(*vfs.Entry, error) bool) {
			if from == (vfs.Pos{}) {
				yield(entry(strings.Repeat("d", 255), dir+1, vfs.TypeDir, 1), nil)
			}
		}
	})
}

func TestTooDeep(t *testing.T) {
	var deepest int
	l := newLog(t)
	l.onEnter = func(d *Dir) error { deepest = max(deepest, d.Depth()); return nil }
	if err := l.walk(chain(), Options{MaxDepth: 3000}); err != nil {
		t.Fatal(err)
	}
	if deepest != 3000 || len(l.left) != 3001 {
		t.Errorf("went %d levels down and left %d", deepest, len(l.left))
	}
	if len(l.faults) != 1 || !errors.Is(l.faults[0].err, ErrTooDeep) {
		t.Fatalf("%d faults, want ErrTooDeep", len(l.faults))
	}
	if p := l.faults[0].path; len(p) > vfs.MaxPath || !strings.HasPrefix(p, ".../ddd") {
		t.Errorf("path of %d bytes: %.20s", len(p), p)
	}
}

func TestLoop(t *testing.T) {
	tests := map[string]func(dir uint64, yield func(*vfs.Entry, error) bool){
		// Each directory holds the root, under the same handle.
		"handle": func(dir uint64, yield func(*vfs.Entry, error) bool) {
			_ = yield(entry("root", 1, vfs.TypeDir, 1), nil) &&
				(dir > 3 || yield(entry("down", dir+1, vfs.TypeDir, 2), nil))
		},
		// A new handle each time, but the ids tell.
		"id": func(dir uint64, yield func(*vfs.Entry, error) bool) {
			e := entry("root", 1, vfs.TypeDir, 1)
			e.Handle = handle(dir + 1000)
			_ = yield(e, nil) && (dir > 3 || yield(entry("down", dir+1, vfs.TypeDir, 2), nil))
		},
	}
	for name, list := range tests {
		t.Run(name, func(t *testing.T) {
			f := invented(func(dir uint64, from vfs.Pos) iter.Seq2[*vfs.Entry, error] {
				return func(yield func(*vfs.Entry, error) bool) {
					if from == (vfs.Pos{}) {
						list(dir, yield)
					}
				}
			})
			l := newLog(t)
			if err := l.walk(f, Options{}); err != nil {
				t.Fatal(err)
			}
			if len(l.left) != 4 || len(l.faults) != 4 {
				t.Errorf("%d directories and %d faults, want 4 of each", len(l.left), len(l.faults))
			}
			for _, f := range l.faults {
				if !errors.Is(f.err, ErrLoop) {
					t.Errorf("%s: %v", f.path, f.err)
				}
			}
		})
	}
}

// TestSameTwice: one directory under two names is no loop.
func TestSameTwice(t *testing.T) {
	f := invented(func(dir uint64, from vfs.Pos) iter.Seq2[*vfs.Entry, error] {
		return func(yield func(*vfs.Entry, error) bool) {
			if dir == 1 && from == (vfs.Pos{}) {
				_ = yield(entry("a", 2, vfs.TypeDir, 1), nil) && yield(entry("b", 2, vfs.TypeDir, 2), nil)
			}
		}
	})
	l := newLog(t)
	if err := l.walk(f, Options{}); err != nil || len(l.left) != 3 || len(l.faults) != 0 {
		t.Errorf("%v, %d directories, %v", err, len(l.left), l.faults)
	}
}

func TestSkipDir(t *testing.T) {
	l := newLog(t)
	l.onEnter = func(d *Dir) error {
		if d.Name == "a" {
			return ErrSkipDir
		}
		return nil
	}
	if err := l.walk(small(t), Options{}); err != nil {
		t.Fatal(err)
	}
	if got := sorted(l.left); !slices.Equal(got, []string{".", "c"}) {
		t.Errorf("left %q", got)
	}
	if !slices.Equal(l.entries, []string{"h"}) {
		t.Errorf("entries %q", l.entries)
	}
}

// TestVisitorErrors ends a walk from each of the visitor's methods.
func TestVisitorErrors(t *testing.T) {
	stop := errors.New("stop")
	broken := &hooked{FS: small(t)}
	broken.readDir = func(vfs.Handle, vfs.Pos) iter.Seq2[*vfs.Entry, error] {
		return func(yield func(*vfs.Entry, error) bool) { yield(nil, vfs.ErrAccess) }
	}
	tests := map[string]struct {
		fs  vfs.FS
		set func(l *log)
	}{
		"enter": {small(t), func(l *log) { l.onEnter = func(*Dir) error { return stop } }},
		"entry": {small(t), func(l *log) { l.onEntry = func(*Dir, *vfs.Entry) error { return stop } }},
		"leave": {small(t), func(l *log) { l.onLeave = func(*Dir) error { return stop } }},
		"fault": {broken, func(l *log) { l.onFault = stop }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLog(t)
			tt.set(l)
			if err := l.walk(tt.fs, Options{}); !errors.Is(err, stop) {
				t.Errorf("error %v, want the visitor's", err)
			}
			if slices.Contains(l.left, ".") && name != "leave" {
				t.Error("the root was left all the same")
			}
		})
	}
}

// TestCancel cancels a walk in its middle, while a directory is held.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := newLog(t)
	var held *Dir
	l.onEnter = func(d *Dir) error {
		if d.Parent == nil {
			d.Hold()
			held = d
		}
		return nil
	}
	l.onEntry = func(*Dir, *vfs.Entry) error { cancel(); return nil }
	f := small(t)
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := Tree(ctx, f, root, Options{}, l); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	held.Release()
	if slices.Contains(l.left, ".") {
		t.Error("a directory was left after the walk had ended")
	}
}

// TestHold keeps directories open from other goroutines.
func TestHold(t *testing.T) {
	l := newLog(t)
	var released atomic.Int64
	var flying sync.WaitGroup
	gate := make(chan struct{})
	l.onEntry = func(d *Dir, _ *vfs.Entry) error {
		d.Hold()
		flying.Go(func() {
			<-gate
			released.Add(1)
			d.Release()
		})
		return nil
	}
	l.onLeave = func(d *Dir) error {
		if d.Name == "b" && released.Load() == 0 {
			t.Error("b was left while it was held")
		}
		if d.Parent == nil && released.Load() != 3 {
			t.Errorf("the root was left after %d of 3 releases", released.Load())
		}
		if d.Name == "c" {
			close(gate) // c is empty, and held by nobody
		}
		return nil
	}
	if err := l.walk(small(t), Options{}); err != nil {
		t.Fatal(err)
	}
	flying.Wait()
	if len(l.left) != 4 {
		t.Errorf("left %q", l.left)
	}
}

// TestAbort ends a walk from behind a Hold.
func TestAbort(t *testing.T) {
	l := newLog(t)
	var flying sync.WaitGroup
	l.onEntry = func(d *Dir, _ *vfs.Entry) error {
		d.Hold()
		flying.Go(func() {
			d.Abort(io.ErrUnexpectedEOF)
			d.Release()
		})
		return nil
	}
	err := l.walk(small(t), Options{})
	flying.Wait()
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
}

func TestRootIsNoDirectory(t *testing.T) {
	f := small(t)
	h, _, _, err := f.Lookup(t.Context(), rootOf(t, f), "h")
	if err != nil {
		t.Fatal(err)
	}
	if err := Tree(t.Context(), f, h, Options{}, newLog(t)); !errors.Is(err, vfs.ErrNotDir) {
		t.Errorf("error %v", err)
	}
}

func rootOf(t testing.TB, f vfs.FS) vfs.Handle {
	t.Helper()
	h, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestPath(t *testing.T) {
	root := &Dir{}
	a := &Dir{Parent: root, Name: "a"}
	b := &Dir{Parent: a, Name: "b"}
	for _, tt := range []struct {
		d          *Dir
		name, want string
	}{{root, "", "."}, {root, "x", "x"}, {a, "", "a"}, {b, "", "a/b"}, {b, "x", "a/b/x"}} {
		if got := tt.d.Path(tt.name); got != tt.want {
			t.Errorf("path %q, want %q", got, tt.want)
		}
	}
}
