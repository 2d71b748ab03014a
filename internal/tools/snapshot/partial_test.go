package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// growing is a tree that is written, of which checkpoints are put: an open directory in another one, and files in both.
type growing struct {
	t     testing.TB
	w     *Writer
	attr  vfs.Attr
	e     [3]*Entry
	d     [3]*DirWriter
	store object.Store
}

func grow(t testing.TB, maxDirHeld int) *growing {
	g := &growing{t: t, store: object.NewMemory(object.MemoryOptions{})}
	var err error
	if g.w, err = NewWriter(g.store); err != nil {
		t.Fatal(err)
	}
	g.w.maxDirHeld, g.w.partSize = maxDirHeld, maxDirHeld/2
	g.attr = vfs.Attr{Valid: vfs.MaskV3 &^ vfs.MaskChange, Type: vfs.TypeDir, Mode: 0o755, Mtime: epoch, Ctime: epoch, Atime: epoch}
	var up *DirWriter
	for i, path := range []string{"", "a", "a/b"} {
		g.e[i] = &Entry{Name: path[max(len(path)-1, 0):], Attr: g.attr}
		g.d[i] = g.w.Dir(path)
		g.d[i].In(up, g.e[i])
		up = g.d[i]
	}
	return g
}

// file adds a file to a directory.
func (g *growing) file(dir, i int) {
	content := []byte(fmt.Sprint("content of ", dir, i))
	a := g.attr
	a.Type, a.Size, a.FileID = vfs.TypeReg, uint64(len(content)), uint64(i)
	e := &Entry{Name: largeName(i * 7919 % 100_000), Attr: a}
	var err error
	if e.Content, _, err = g.w.Data(g.t.Context(), bytes.NewReader(content), int64(len(content)), nil); err == nil {
		err = g.d[dir].Add(g.t.Context(), e)
	}
	if err != nil {
		g.t.Error(err)
	}
}

// counts is how many files each directory of a snapshot has, of which each was read.
func (g *growing) counts(s *Snapshot) (n [3]int) {
	g.t.Helper()
	tr := newTree(g.t, s.FS())
	at := tr.root
	for i := range n {
		below, last := at, ""
		for e, err := range s.FS().ReadDir(g.t.Context(), at, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
			if err != nil {
				g.t.Fatal(err)
			}
			if string(e.Name) <= last {
				g.t.Fatalf("%s after %s", e.Name, last)
			}
			last = string(e.Name)
			if e.Attr.Type == vfs.TypeDir {
				below = e.Handle
				continue
			}
			f, _, err := s.FS().Open(g.t.Context(), vfs.At{H: e.Handle}, &vfs.OpenHow{Access: vfs.ShareRead})
			if err != nil {
				g.t.Fatal(err)
			}
			b, err := io.ReadAll(&readAt{ctx: g.t.Context(), f: f})
			if want := fmt.Sprint("content of ", i, e.FileID); err != nil || string(b) != want {
				g.t.Fatalf("%q, %v, want %q", b, err, want)
			}
			n[i]++
		}
		at = below
	}
	return n
}

type readAt struct {
	ctx context.Context
	f   vfs.File
	off uint64
}

func (r *readAt) Read(p []byte) (int, error) {
	n, eof, err := r.f.ReadAt(r.ctx, p, r.off, nil)
	if r.off += uint64(n); eof && err == nil {
		err = io.EOF
	}
	return n, err
}

// finish ends the tree, and checks what it has.
func (g *growing) finish(want [3]int) {
	g.t.Helper()
	for i := 2; i >= 0; i-- {
		err := g.d[i].Close(g.t.Context(), g.e[i])
		if err == nil && i > 0 {
			err = g.d[i-1].Add(g.t.Context(), g.e[i])
		}
		if err != nil {
			g.t.Fatal(err)
		}
	}
	if got := g.counts(finish(g.t, g.w, g.store, Meta{Complete: true}, g.e[0])); got != want {
		g.t.Errorf("%v files, want %v", got, want)
	}
}

func (g *growing) checkpoint() *Snapshot {
	g.t.Helper()
	if err := g.w.Checkpoint(g.t.Context(), Meta{Name: "test", Time: epoch}); err != nil {
		g.t.Fatal(err)
	}
	s, err := OpenPartial(g.t.Context(), g.store, "test")
	if err != nil || s == nil || s.Ref().Complete || !s.Ref().Partial {
		g.t.Fatalf("%+v, %v", s, err)
	}
	return s
}

// TestCheckpoint wants each checkpoint to have what was added before it, with directories in memory and in the store,
// and the snapshot not to change by them.
func TestCheckpoint(t *testing.T) {
	for _, held := range []int{1 << 20, 8 << 10} {
		g := grow(t, held)
		n := 0
		for _, more := range []int{0, 1, 100, 3, 700} {
			for range more {
				g.file(n%3, n)
				n++
			}
			want := [3]int{(n + 2) / 3, (n + 1) / 3, n / 3}
			if got := g.counts(g.checkpoint()); got != want {
				t.Errorf("%d bytes held: %v files in a checkpoint, want %v", held, got, want)
			}
		}
		if held < 1<<20 && len(g.d[0].runs) < 2 {
			t.Errorf("%d runs", len(g.d[0].runs))
		}
		g.finish([3]int{(n + 2) / 3, (n + 1) / 3, n / 3})
	}
	if err := DropPartial(t.Context(), object.NewMemory(object.MemoryOptions{}), "test"); err != nil {
		t.Error(err)
	}
}

// TestCheckpointMeanwhile puts checkpoints while files are added and directories end, and wants each to be whole.
func TestCheckpointMeanwhile(t *testing.T) {
	g := grow(t, 8<<10)
	const each = 200
	var all sync.WaitGroup
	for dir := range 3 {
		all.Go(func() {
			for i := range each {
				g.file(dir, i)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		all.Wait()
	}()
	var last [3]int
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		got := g.counts(g.checkpoint())
		for i := range got {
			if got[i] < last[i] {
				t.Errorf("%v files after %v", got, last)
			}
		}
		last = got
	}
	if want := [3]int{each, each, each}; last != want {
		t.Errorf("%v files in the end", last)
	}
	g.finish([3]int{each, each, each})
}

// TestNoPartial wants no checkpoint where there is none, and one of another name or version to be refused.
func TestNoPartial(t *testing.T) {
	store := object.NewMemory(object.MemoryOptions{})
	if s, err := OpenPartial(t.Context(), store, "test"); s != nil || err != nil {
		t.Errorf("%v, %v", s, err)
	}
	g := grow(t, 1<<20)
	g.checkpoint()
	r, _, err := g.store.Get(t.Context(), "partial/test", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.store.Put(t.Context(), "partial/other", bytes.NewReader(b), object.PutOptions{Size: int64(len(b))}); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenPartial(t.Context(), g.store, "other"); !errors.Is(err, ErrDamaged) {
		t.Errorf("of another name: %v", err)
	}
	if _, err := OpenPartial(t.Context(), g.store, "No"); !errors.Is(err, ErrName) {
		t.Error(err)
	}
}

// TestVerify damages each object of a snapshot in turn, and wants what lacks it to be named, and nothing else.
func TestVerify(t *testing.T) {
	tr := mem(t)
	for i := range 3 {
		tr.file(fmt.Sprintf("d%d/small", i), []byte(fmt.Sprint("small ", i)))
		tr.file(fmt.Sprintf("d%d/large", i), noise(uint64(i), smallFile+1))
	}
	verify := func(store object.Store, s *Snapshot) (hurt []string, read int64) {
		var mu sync.Mutex
		err := NewVerifier(store, VerifyOptions{
			Parallel: 3, Done: func(n int64) { mu.Lock(); defer mu.Unlock(); read++ },
			Hurt: func(path string, err error) {
				mu.Lock()
				defer mu.Unlock()
				if !errors.Is(err, ErrDamaged) {
					t.Error(err)
				}
				hurt = append(hurt, path)
			},
		}).Verify(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return hurt, read
	}
	for i := 0; ; i++ {
		store := object.NewMemory(object.MemoryOptions{})
		s := take(t, tr, store, Meta{Complete: true})
		if hurt, read := verify(store, s); len(hurt) > 0 || read != 4 {
			t.Fatalf("%d objects, %v", read, hurt)
		}
		page, err := store.List(t.Context(), "sha256/", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		if i == len(page.Objects) {
			return
		}
		if err := store.Delete(t.Context(), page.Objects[i].Key); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(t.Context(), store, s.Ref()); err != nil {
			t.Fatal(err)
		}
		if hurt, _ := verify(store, s); len(hurt) == 0 {
			t.Errorf("%s is not missed", page.Objects[i].Key)
		}
	}
}
