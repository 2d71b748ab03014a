package backup

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// restless is a tree that changes whenever it is looked at. It knows every state that each file has had.
type restless struct {
	t    *testing.T
	tick atomic.Int64
	fs   *memfs.FS
	busy atomic.Bool
	on   atomic.Bool

	mu     sync.Mutex
	r      *rand.Rand
	dirs   []vfs.Handle
	files  []*restlessFile
	states map[uint64]map[string]bool // by file id
	n      int
}

type restlessFile struct {
	in    vfs.Handle
	name  string
	h     vfs.Handle
	id    uint64
	state []byte
}

const restlessSize, restlessRead = 3000, 700

func newRestless(t *testing.T, seed uint64) *restless {
	w := &restless{t: t, r: rand.New(rand.NewPCG(seed, 0)), states: make(map[uint64]map[string]bool)}
	w.fs = memfs.New(memfs.Options{Now: w.now, Fault: func(context.Context, string, vfs.Handle) error {
		if w.on.Load() && !w.busy.Swap(true) {
			w.change()
			w.busy.Store(false)
		}
		return nil
	}})
	root, _, err := w.fs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.dirs = []vfs.Handle{root}
	for i := range 4 {
		h, _, _, err := w.fs.Create(t.Context(), root, fmt.Sprint("d", i), &vfs.CreateHow{Type: vfs.TypeDir})
		if err != nil {
			t.Fatal(err)
		}
		w.dirs = append(w.dirs, h)
	}
	for range 40 {
		w.create()
	}
	return w
}

// now is another time whenever it is asked for.
func (w *restless) now() time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(w.tick.Add(1)) * time.Millisecond)
}

func (w *restless) must(err error) {
	if err != nil {
		w.t.Error(err)
	}
}

func (w *restless) create() {
	in := w.dirs[w.r.IntN(len(w.dirs))]
	w.n++
	f := &restlessFile{in: in, name: fmt.Sprint("f", w.n)}
	h, a, _, err := w.fs.Create(w.t.Context(), in, f.name, &vfs.CreateHow{Type: vfs.TypeReg})
	w.must(err)
	f.h, f.id = h, a.FileID
	w.states[f.id] = map[string]bool{"": true}
	w.write(f, 0, restlessSize)
	w.files = append(w.files, f)
}

// write writes a part of a file.
func (w *restless) write(f *restlessFile, off, n int) {
	w.n++
	part := strings.Repeat(fmt.Sprintf("%07d", w.n), n/7+1)[:n]
	file, _, err := w.fs.Open(w.t.Context(), vfs.At{H: f.h}, &vfs.OpenHow{Access: vfs.ShareWrite})
	w.must(err)
	var wr vfs.Written
	_, err = vfs.WriteFull(w.t.Context(), file, []byte(part), uint64(off), vfs.FileSync, &wr)
	w.must(err)
	w.must(file.Close(w.t.Context()))
	if need := off + n; need > len(f.state) {
		f.state = append(f.state, make([]byte, need-len(f.state))...)
	}
	copy(f.state[off:], part)
	w.states[f.id][string(f.state)] = true
}

// change changes something.
func (w *restless) change() {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.r.IntN(len(w.files))
	f := w.files[i]
	switch n := w.r.IntN(20); {
	case n < 4:
		w.write(f, w.r.IntN(2)*restlessSize/2, restlessSize/2)
	case n < 5:
		w.write(f, len(f.state), 100)
	case n < 6:
		w.create()
	case n < 7:
		to := w.dirs[w.r.IntN(len(w.dirs))]
		_, _, err := w.fs.Rename(w.t.Context(), f.in, f.name, to, f.name)
		w.must(err)
		f.in = to
	case n < 8 && len(w.files) > 20:
		_, err := w.fs.Remove(w.t.Context(), f.in, f.name, false)
		w.must(err)
		w.files = append(w.files[:i], w.files[i+1:]...)
	}
}

// slowly is a file system whose files are read a little at a time.
type slowly struct{ vfs.FS }

type slowFile struct{ vfs.File }

func (f slowly) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	file, o, err := f.FS.Open(ctx, at, how)
	return slowFile{file}, o, err
}

func (f slowFile) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	n, eof, err := f.File.ReadAt(ctx, p[:min(len(p), restlessRead)], off, post)
	return n, eof, err
}

// TestChangingTree backs up a tree that changes all the time, and wants every file of each snapshot to be in a state that it has
// had, or to be marked.
func TestChangingTree(t *testing.T) {
	marked, whole := 0, 0
	for seed := range uint64(5) {
		w := newRestless(t, seed)
		store := object.NewMemory(object.MemoryOptions{})
		for range 3 {
			o := Options{FS: slowly{w.fs}, Root: w.dirs[0], Store: store, Meta: snapshot.Meta{Name: "t"}, Now: w.now}
			var err error
			if o.Base, err = Latest(t.Context(), store, "t", nil); err != nil {
				t.Fatal(err)
			}
			w.on.Store(true)
			sum, err := Run(t.Context(), o)
			w.on.Store(false)
			if err != nil || !sum.Complete {
				t.Fatalf("seed %d: %+v, %v", seed, sum, err)
			}
			ref, err := snapshot.Find(t.Context(), store, sum.Snapshot)
			if err != nil {
				t.Fatal(err)
			}
			s, err := snapshot.Open(t.Context(), store, ref)
			if err != nil {
				t.Fatal(err)
			}
			m, all := w.check(s)
			marked, whole = marked+m, whole+all-m
			if uint64(all) != sum.Files || uint64(m) < sum.Changed {
				t.Errorf("seed %d: %d files, %d marked: %+v", seed, all, m, sum)
			}
		}
	}
	t.Logf("%d files were whole, %d marked", whole, marked)
	if marked == 0 || whole == 0 {
		t.Error("nothing was marked, or all")
	}
}

// check wants each file of a snapshot to be in a state that it has had, or to be marked, and counts them.
func (w *restless) check(s *snapshot.Snapshot) (marked, all int) {
	w.t.Helper()
	root, _, err := s.FS().Root(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	dirs := []vfs.Handle{root}
	for len(dirs) > 0 {
		dir := dirs[0]
		dirs = dirs[1:]
		for in, err := range s.FS().ReadDir(w.t.Context(), dir, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
			if err != nil {
				w.t.Fatal(err)
			}
			if in.Attr.Type == vfs.TypeDir {
				dirs = append(dirs, in.Handle)
				continue
			}
			all++
			e, err := s.Entry(w.t.Context(), in.Handle)
			if err != nil {
				w.t.Fatal(err)
			}
			if e.Changed {
				marked++
			} else if got := contentOf(w.t, s, in.Handle); !w.states[in.FileID][got] {
				w.t.Errorf("%s has a state that it never had, of %d bytes", in.Name, len(got))
			}
		}
	}
	return marked, all
}
