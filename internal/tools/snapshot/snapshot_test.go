package snapshot

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
)

// motley makes a tree with all that a tree can have, a file that is cut by content included.
func motley(t testing.TB) *tree {
	tr := modest(t)
	tr.file("d/cut", noise(3, wholeFile+1))
	sparse := tr.file("sparse", []byte("begin"))
	tr.write(sparse, 40<<20, []byte("end"))
	tr.write(sparse, 10<<20, noise(4, 1<<20))
	return tr
}

// modest makes a tree with all that a tree can have, but for large files.
func modest(t testing.TB) *tree {
	tr := mem(t)
	ctx := t.Context()
	tr.file("empty", nil)
	tr.file("small", []byte("small\n"))
	tr.file("zeros", make([]byte, 100_000))
	tr.file("d/noise", noise(1, smallFile))
	tr.file("d/whole", noise(2, smallFile+1))
	tr.file("d/e/f/g/deep", []byte(strings.Repeat("deep", 99)))
	tr.file("not \xff UTF-8", []byte("bytes"))
	tr.file("new\nline", []byte("\x00"))
	tr.file("\ufffd", nil)
	tr.add("d/link", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "../\xfe/nowhere"})
	tr.add("fifo", vfs.CreateHow{Type: vfs.TypeFIFO})
	tr.add("device", vfs.CreateHow{Type: vfs.TypeChar, Rdev: 5<<32 | 1})
	tr.add("empty-dir/below", vfs.CreateHow{Type: vfs.TypeDir})
	dir, _ := tr.place("d/x")
	if _, _, err := tr.fs.Link(ctx, tr.at("small"), dir, "second name"); err != nil {
		t.Fatal(err)
	}
	many := tr.file("many-holes", nil)
	for i := range uint64(2 * maxInlineHoles) {
		tr.write(many, i<<17, noise(i, 5000))
	}
	set := func(h vfs.Handle, s vfs.SetAttr) {
		if _, err := tr.fs.SetAttr(ctx, h, &s, nil); err != nil {
			t.Fatal(err)
		}
	}
	set(tr.at("small"), vfs.SetAttr{Valid: vfs.MaskMode | vfs.MaskUID | vfs.MaskGID, Mode: 0o4751, UID: 1001, GID: 1002})
	set(tr.at("empty"), vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: time.Unix(-5, 999)})
	list := []vfs.ACLEntry{
		{Tag: vfs.ACLUserObj, Perm: 6}, {Tag: vfs.ACLUser, ID: 77, Perm: 4}, {Tag: vfs.ACLGroupObj, Perm: 4},
		{Tag: vfs.ACLMask, Perm: 4}, {Tag: vfs.ACLOther},
	}
	if err := tr.fs.(vfs.ACLer).SetACL(ctx, tr.at("d/noise"), vfs.ACL{Access: list}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		value := noise(uint64(i), i*i*8000)
		if err := tr.fs.(vfs.Xattrer).SetXattr(ctx, tr.at("d/whole"), fmt.Sprintf("user.a%d", i), value, vfs.XattrEither); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.fs.(vfs.Xattrer).SetXattr(ctx, tr.at("d"), "user.\xff", []byte("v"), vfs.XattrEither); err != nil {
		t.Fatal(err)
	}
	return tr
}

// verify compares two trees by job.Verify, owners, lists and extended attributes included.
func verify(t *testing.T, a, b vfs.FS) {
	t.Helper()
	place := func(f vfs.FS) job.Place {
		h, _, err := f.Root(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return job.Place{FS: f, Handle: h}
	}
	sum, err := job.Verify(t.Context(), job.VerifyOptions{
		Source: place(a), Dest: place(b), Pool: &bufpool.Pool{}, Now: time.Now, Owner: true, ACLs: true,
	})
	if err != nil || sum.Differences+sum.Missing+sum.Extra+sum.Errors != 0 || sum.Files == 0 {
		t.Errorf("%+v: %v", sum, err)
	}
}

// TestSame wants a snapshot to be as its source was, and a copy of it as well.
func TestSame(t *testing.T) {
	tr := motley(t)
	store := object.NewMemory(object.MemoryOptions{})
	s := take(t, tr, store, Meta{Complete: true})
	verify(t, tr.fs, s.FS())

	// Attributes that a verification does not look at.
	want := make(map[string]vfs.Attr)
	if err := each(t.Context(), tr.fs, func(path string, _ vfs.Handle, a *vfs.Attr, _ []byte) error {
		want[path] = *a
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := each(t.Context(), s.FS(), func(path string, h vfs.Handle, a *vfs.Attr, _ []byte) error {
		again, err := s.FS().GetAttr(t.Context(), h, vfs.MaskV3)
		if err != nil || again != *a {
			t.Errorf("%s: %+v, and in the listing %+v: %v", path, again, *a, err)
		}
		w := want[path]
		delete(want, path)
		for _, a := range []*vfs.Attr{a, &w} {
			a.Change, a.Valid = 0, a.Valid&vfs.MaskV3
			for _, t := range []*time.Time{&a.Atime, &a.Mtime, &a.Ctime, &a.Btime} {
				*t = time.Unix(t.Unix(), int64(t.Nanosecond()))
			}
		}
		a.Btime, w.Btime = time.Time{}, time.Time{}
		w.Atime, a.Atime = time.Time{}, time.Time{} // reading has moved the source's
		if *a != w {
			t.Errorf("%s:\n%+v, want\n%+v", path, *a, w)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", slices.Collect(maps.Keys(want)))
	}

	to := mem(t)
	from, _, err := s.FS().Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := job.Copy(t.Context(), job.CopyOptions{
		Source: job.Place{FS: s.FS(), Handle: from}, Dest: job.Place{FS: to.fs, Handle: to.root},
		Pool: &bufpool.Pool{}, Random: rand.Reader, Now: time.Now, Owner: true,
	}); err != nil {
		t.Fatal(err)
	}
	verify(t, tr.fs, to.fs)
	for _, name := range []string{"sparse", "many-holes"} {
		a, err := to.fs.GetAttr(t.Context(), to.at(name), vfs.MaskV3)
		w, werr := tr.fs.GetAttr(t.Context(), tr.at(name), vfs.MaskV3)
		if err != nil || werr != nil || a.Used != w.Used {
			t.Errorf("%s uses %d bytes, want %d: %v, %v", name, a.Used, w.Used, err, werr)
		}
	}
}

// TestIOFS has io/fs's own suite look at a snapshot.
func TestIOFS(t *testing.T) {
	tr := mem(t)
	tr.file("a/b/c", []byte("c"))
	tr.file("a/d", noise(1, 3000))
	s := take(t, tr, object.NewMemory(object.MemoryOptions{}), Meta{Complete: true})
	if err := fstest.TestFS(iofs.New(t.Context(), s.FS(), newTree(t, s.FS()).root), "a/b/c", "a/d"); err != nil {
		t.Error(err)
	}
}

// counted counts the Gets of a store.
type counted struct {
	object.Store
	gets atomic.Int64
}

func (c *counted) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, object.Info, error) {
	c.gets.Add(1)
	return c.Store.Get(ctx, key, off, n)
}

// large makes a snapshot of a directory that is kept as several runs, and of a small one beside it.
func large(t *testing.T, store object.Store, n int) *Snapshot {
	t.Helper()
	w, err := NewWriter(store)
	if err != nil {
		t.Fatal(err)
	}
	w.maxDirHeld, w.partSize = 64<<10, 32<<10
	a := vfs.Attr{Valid: vfs.MaskV3 &^ vfs.MaskChange, Type: vfs.TypeDir, Mode: 0o755, Mtime: epoch, Ctime: epoch, Atime: epoch}
	root, sub := &Entry{Attr: a}, &Entry{Name: "large", Attr: a}
	top, d := w.Dir(""), w.Dir("large")
	for i := range n {
		// An order that is not that of the names, and each name twice.
		a.Type, a.FileID = vfs.TypeFIFO, uint64(i)
		for range 2 {
			if err := d.Add(t.Context(), &Entry{Name: largeName(i * 7919 % n), Attr: a}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(d.runs) <= mergeRuns {
		t.Fatalf("%d runs", len(d.runs))
	}
	for _, err := range []error{d.Close(t.Context(), sub), top.Add(t.Context(), sub), top.Close(t.Context(), root)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if sub.listing.Index == nil || root.listing.Index != nil {
		t.Fatalf("%+v, %+v", sub.listing, root.listing)
	}
	return finish(t, w, store, Meta{Complete: true}, root)
}

func largeName(i int) string { return fmt.Sprintf("entry-%07d", i) }

// TestLargeDirectory wants a directory whose lines do not fit memory to have each name once, to be listed
// from any place on, and a name in it to be found with a few Gets.
func TestLargeDirectory(t *testing.T) {
	const n = 10_007 // a prime, so that the order above meets every name
	store := &counted{Store: object.NewMemory(object.MemoryOptions{})}
	s := large(t, store, n)
	f := s.FS()
	h := newTree(t, f).at("large")
	var names []string
	var places []vfs.Pos
	for e, err := range f.ReadDir(t.Context(), h, vfs.Pos{}, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		names, places = append(names, string(e.Name)), append(places, e.Next)
	}
	if len(names) != n || !slices.IsSorted(names) {
		t.Fatalf("%d names, in order: %v", len(names), slices.IsSorted(names))
	}
	for i := 0; i < n; i += 499 {
		next := ""
		for e, err := range f.ReadDir(t.Context(), h, places[i], 0, 0) {
			if err != nil {
				t.Fatal(err)
			}
			next = string(e.Name)
			break
		}
		if i+1 < n && next != largeName(i+1) {
			t.Errorf("behind %s comes %q", names[i], next)
		}
	}
	for i := range 30 {
		i = i * 331 % n
		fresh, err := Open(t.Context(), store, s.Ref())
		if err != nil {
			t.Fatal(err)
		}
		store.gets.Store(0)
		newTree(t, fresh.FS()).at("large/" + largeName(i))
		if got := store.gets.Load(); got > 4 {
			t.Fatalf("%d Gets for one name", got)
		}
	}
	for _, missing := range []string{"", "a", "entry-", "entry-9999999", "z"} {
		if missing == "" {
			continue
		}
		if _, _, _, err := f.Lookup(t.Context(), h, missing); !errors.Is(err, vfs.ErrNoEnt) {
			t.Errorf("%q: %v", missing, err)
		}
	}
}

// TestFewReads wants one small file, deep in a tree with many, to be read with at most 8 Gets, the root's
// included.
func TestFewReads(t *testing.T) {
	tr := mem(t)
	for i := range 20 {
		for j := range 50 {
			tr.file(fmt.Sprintf("a/b%d/c/d/f%d", i, j), noise(uint64(i*50+j), 8<<10))
		}
	}
	store := &counted{Store: object.NewMemory(object.MemoryOptions{})}
	take(t, tr, store, Meta{Complete: true})
	objects := 0
	for _, err := range object.All(t.Context(), store, "") {
		if objects++; err != nil {
			t.Fatal(err)
		}
	}
	if objects > 10 {
		t.Errorf("1000 files of 8 KiB are %d objects", objects)
	}
	store.gets.Store(0)
	ref, err := Find(t.Context(), store, "test")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), store, ref)
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(t.Context(), s.FS(), newTree(t, s.FS()).at("a/b17/c/d/f23"))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the file", got, noise(17*50+23, 8<<10))
	if n := store.gets.Load(); n > 8 {
		t.Errorf("%d Gets", n)
	}
}

// TestInserted wants one byte in the middle of a large file to change few pieces.
func TestInserted(t *testing.T) {
	b := noise(9, 24<<20)
	store := object.NewMemory(object.MemoryOptions{})
	store1 := func(b []byte) (stored int64) {
		w, err := NewWriter(store)
		if err != nil {
			t.Fatal(err)
		}
		c, n, err := w.Data(t.Context(), bytes.NewReader(b), int64(len(b)), nil)
		if err != nil || n != int64(len(b)) || len(c.Pieces) < 3 {
			t.Fatalf("%d bytes in %d pieces: %v", n, len(c.Pieces), err)
		}
		for _, p := range c.Pieces[:len(c.Pieces)-1] {
			if p.Size < minCut || p.Size > maxPiece {
				t.Errorf("a piece of %d bytes", p.Size)
			}
		}
		stored, _ = w.Written()
		return stored
	}
	if got := store1(b); got != int64(len(b)) {
		t.Errorf("%d bytes are stored of the first", got)
	}
	if got := store1(slices.Insert(b, len(b)/2, 'x')); got > 2*maxPiece {
		t.Errorf("%d bytes are stored for one byte", got)
	}
}

// TestGrown wants a file that is longer than was said, or shorter, to be kept as far as it was read.
func TestGrown(t *testing.T) {
	for _, c := range []struct{ said, is int }{{10, 20}, {20, 10}, {10, 0}, {0, 10}, {100, wholeFile + 2}, {wholeFile + 1, 100}} {
		store := object.NewMemory(object.MemoryOptions{})
		w, err := NewWriter(store)
		if err != nil {
			t.Fatal(err)
		}
		b := noise(7, c.is)
		e := &Entry{Name: "f", Attr: vfs.Attr{Valid: vfs.MaskType | vfs.MaskSize, Type: vfs.TypeReg}}
		n := int64(0)
		if e.Content, n, err = w.Data(t.Context(), bytes.NewReader(b), int64(c.said), nil); err != nil || n != int64(c.is) {
			t.Fatalf("%+v: %d, %v", c, n, err)
		}
		e.Attr.Size = uint64(n)
		root := &Entry{Attr: vfs.Attr{Valid: vfs.MaskType, Type: vfs.TypeDir}}
		d := w.Dir("")
		if err := errors.Join(d.Add(t.Context(), e), d.Close(t.Context(), root)); err != nil {
			t.Fatal(err)
		}
		f := finish(t, w, store, Meta{}, root).FS()
		got, err := read(t.Context(), f, newTree(t, f).at("f"))
		if err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("%+v", c), got, b)
	}
}

// TestReuse wants an entry of an earlier snapshot to be one of a later, without reading or storing content.
func TestReuse(t *testing.T) {
	tr := motley(t)
	store := object.NewMemory(object.MemoryOptions{})
	old := take(t, tr, store, Meta{Complete: true})
	w, err := NewWriter(store)
	if err != nil {
		t.Fatal(err)
	}
	var again func(in *Entry, at place, path string) *Entry
	again = func(in *Entry, at place, path string) *Entry {
		out := *in
		d, err := old.dir(t.Context(), in, at)
		if err != nil {
			t.Fatal(err)
		}
		to := w.Dir(path)
		v := old.FS().(*view)
		for e, err := range v.ReadDir(t.Context(), old.handle(&d.at), vfs.Pos{}, 0, 0) {
			if err != nil {
				t.Fatal(err)
			}
			in, err := old.Entry(t.Context(), e.Handle)
			if err != nil {
				t.Fatal(err)
			}
			if in.Attr.Type == vfs.TypeDir {
				at, err := old.placeOf(&e.Handle)
				if err != nil {
					t.Fatal(err)
				}
				in = again(in, at, strings.TrimPrefix(path+"/"+in.Name, "/"))
			} else if err := w.Reuse(t.Context(), old, in); err != nil {
				t.Fatal(err)
			}
			if err := to.Add(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		if err := to.Close(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		return &out
	}
	root := again(old.root, rootPlace(), "")
	s := finish(t, w, store, Meta{Complete: true}, root)
	if stored, _ := w.Written(); stored > 1<<16 {
		t.Errorf("%d bytes were stored", stored)
	}
	if s.Ref().ID == old.Ref().ID {
		t.Errorf("two snapshots have the id %s", s.Ref().ID)
	}
	verify(t, tr.fs, s.FS())
}

// TestNames wants the newest complete snapshot of a name to be found, and others by their ids alone.
func TestNames(t *testing.T) {
	tr := mem(t)
	tr.file("f", []byte("1"))
	store := object.NewMemory(object.MemoryOptions{})
	if _, err := Find(t.Context(), store, "home"); !errors.Is(err, ErrNoSnapshot) {
		t.Error(err)
	}
	bad := take(t, tr, store, Meta{Name: "home", Time: epoch})
	b := bad.Ref()
	_, err := Find(t.Context(), store, "home")
	if only, ok := errors.AsType[*IncompleteError](err); !ok || !errors.Is(err, ErrNoSnapshot) || only.Name != "home" || only.Newest != b.Text() {
		t.Error(err)
	}
	good := take(t, tr, store, Meta{Name: "home", Time: epoch, Complete: true, Tags: []string{"a", "ü"}})
	take(t, tr, store, Meta{Name: "home", Time: epoch.Add(time.Hour)})
	take(t, tr, store, Meta{Name: "home2", Time: epoch, Complete: true})
	ref, err := Find(t.Context(), store, "home")
	if err != nil || ref.ID != good.Ref().ID || !slices.Equal(ref.Tags, []string{"a", "ü"}) || !ref.Time.Equal(epoch) {
		t.Errorf("%+v: %v", ref, err)
	}
	if bad.Ref().ID != "20260102t030405.678z" || ref.ID != "20260102t030405.679z" {
		t.Errorf("%s, %s", bad.Ref().ID, ref.ID)
	}
	if ref, err := Find(t.Context(), store, b.Text()); err != nil || ref.ID != b.ID || ref.Complete {
		t.Errorf("%+v: %v", ref, err)
	}
	all, err := Snapshots(t.Context(), store, "")
	if err != nil || len(all) != 4 || all[3].Name != "home2" {
		t.Errorf("%+v: %v", all, err)
	}
	if some, err := Snapshots(t.Context(), store, "home"); err != nil || len(some) != 3 {
		t.Errorf("%+v: %v", some, err)
	}
	for _, name := range []string{"", "A", "a/b", "..", "-a", strings.Repeat("a", MaxName+1), "a@b"} {
		if err := CheckName(name); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := Find(t.Context(), store, name); err == nil {
			t.Errorf("%q is found", name)
		}
	}
	if _, err := Find(t.Context(), store, "home@../x"); !errors.Is(err, ErrName) {
		t.Error(err)
	}
}

// TestHandles wants handles to outlast the snapshot's opening, and those of others to be refused.
func TestHandles(t *testing.T) {
	tr := modest(t)
	store := object.NewMemory(object.MemoryOptions{})
	s := take(t, tr, store, Meta{Complete: true})
	other := take(t, tr, store, Meta{Complete: true})
	again, err := Open(t.Context(), store, s.Ref())
	if err != nil {
		t.Fatal(err)
	}
	h := newTree(t, s.FS()).at("d/e/f/g/deep")
	if a, err := again.FS().GetAttr(t.Context(), h, 0); err != nil || a.Size != 396 {
		t.Errorf("%+v: %v", a, err)
	}
	if _, err := other.FS().GetAttr(t.Context(), h, 0); !errors.Is(err, vfs.ErrBadHandle) {
		t.Error(err)
	}
	for i := range 2000 {
		b := slices.Clone(h.Bytes())
		r := mathrand.New(mathrand.NewPCG(uint64(i), 0))
		b[tagLen+r.IntN(8)] = byte(r.Uint32())
		bad, err := vfs.MakeHandle(b)
		if err != nil {
			t.Fatal(err)
		}
		a, err := again.FS().GetAttr(t.Context(), bad, 0)
		if err != nil && !errors.Is(err, vfs.ErrBadHandle) && !errors.Is(err, vfs.ErrIO) {
			t.Errorf("%v: %+v, %v", bad, a, err)
		}
	}
	up, _, _, err := s.FS().Lookup(t.Context(), newTree(t, s.FS()).at("d/e/f"), "..")
	if want := newTree(t, s.FS()).at("d/e"); err != nil || up != want {
		t.Errorf("%v, want %v: %v", up, want, err)
	}
	root, _, err := s.FS().Root(t.Context())
	if up, _, _, uerr := s.FS().Lookup(t.Context(), root, ".."); err != nil || uerr != nil || up != root {
		t.Errorf("%v, want %v: %v, %v", up, root, err, uerr)
	}
	if h.Len() > vfs.MaxHandleV3-14 {
		t.Errorf("a handle of %d bytes leaves no room for a seal", h.Len())
	}
}

// TestReadOnly wants every change to be refused, and an end of the context to end calls.
func TestReadOnly(t *testing.T) {
	s := take(t, modest(t), object.NewMemory(object.MemoryOptions{}), Meta{Complete: true})
	f := s.FS()
	tr := newTree(t, f)
	ctx := t.Context()
	h := tr.at("small")
	file, _, err := f.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		t.Fatal(err)
	}
	var w vfs.Written
	changes := map[string]func() error{
		"setattr": func() error { _, err := f.SetAttr(ctx, h, &vfs.SetAttr{}, nil); return err },
		"create": func() error {
			_, _, _, err := f.Create(ctx, tr.root, "x", &vfs.CreateHow{Type: vfs.TypeDir})
			return err
		},
		"link":         func() error { _, _, err := f.Link(ctx, h, tr.root, "x"); return err },
		"remove":       func() error { _, err := f.Remove(ctx, tr.root, "small", false); return err },
		"rename":       func() error { _, _, err := f.Rename(ctx, tr.root, "small", tr.root, "x"); return err },
		"open":         func() error { _, _, err := f.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite}); return err },
		"write":        func() error { _, err := file.WriteAt(ctx, []byte("x"), 0, 0, &w); return err },
		"commit":       func() error { return file.Commit(ctx, 0, 0, &w) },
		"truncate":     func() error { _, err := file.Truncate(ctx, 0); return err },
		"set acl":      func() error { return f.(vfs.ACLer).SetACL(ctx, h, vfs.ACL{}) },
		"set xattr":    func() error { return f.(vfs.Xattrer).SetXattr(ctx, h, "user.x", nil, 0) },
		"remove xattr": func() error { return f.(vfs.Xattrer).RemoveXattr(ctx, h, "user.x") },
	}
	for name, change := range changes {
		if err := change(); !errors.Is(err, vfs.ErrROFS) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := file.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := file.Close(ctx); !errors.Is(err, vfs.ErrInval) {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := f.GetAttr(ended, h, 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, _, _, err := f.Lookup(ended, tr.root, "small"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestRights wants a caller's view to give what modes and lists give, and the view of nobody all.
func TestRights(t *testing.T) {
	tr := modest(t)
	secret := tr.file("locked/secret", []byte("s"))
	set := &vfs.SetAttr{Valid: vfs.MaskMode | vfs.MaskUID, Mode: 0o600, UID: 5}
	if _, err := tr.fs.SetAttr(t.Context(), secret, set, nil); err != nil {
		t.Fatal(err)
	}
	set = &vfs.SetAttr{Valid: vfs.MaskMode | vfs.MaskUID, Mode: 0o700, UID: 5}
	if _, err := tr.fs.SetAttr(t.Context(), tr.at("locked"), set, nil); err != nil {
		t.Fatal(err)
	}
	f := take(t, tr, object.NewMemory(object.MemoryOptions{}), Meta{Complete: true}).FS()
	dir, listed := newTree(t, f).at("locked"), newTree(t, f).at("d/noise")
	open := func(c *vfs.Caller, at vfs.At) error {
		file, _, err := f.As(c).Open(t.Context(), at, &vfs.OpenHow{Access: vfs.ShareRead})
		if err == nil {
			err = file.Close(t.Context())
		}
		return err
	}
	for _, c := range []struct {
		caller *vfs.Caller
		at     vfs.At
		may    bool
	}{
		{nil, vfs.At{Dir: dir, Name: "secret"}, true},
		{&vfs.Caller{}, vfs.At{Dir: dir, Name: "secret"}, true},
		{&vfs.Caller{UID: 5}, vfs.At{Dir: dir, Name: "secret"}, true},
		{&vfs.Caller{UID: 6}, vfs.At{Dir: dir, Name: "secret"}, false},
		{&vfs.Caller{UID: 6}, vfs.At{H: newTree(t, f).at("locked/secret")}, false},
		{&vfs.Caller{UID: 77, GID: 77}, vfs.At{H: listed}, true},
		{&vfs.Caller{UID: 78, GID: 78}, vfs.At{H: listed}, false},
	} {
		if err := open(c.caller, c.at); (err == nil) != c.may || err != nil && !errors.Is(err, vfs.ErrAccess) {
			t.Errorf("%+v at %+v: %v", c.caller, c.at, err)
		}
	}
	stranger := f.As(&vfs.Caller{UID: 6})
	for _, err := range stranger.ReadDir(t.Context(), dir, vfs.Pos{}, 0, 0) {
		if !errors.Is(err, vfs.ErrAccess) {
			t.Errorf("a listing: %v", err)
		}
	}
	all := vfs.AccessRead | vfs.AccessLookup | vfs.AccessModify | vfs.AccessDelete | vfs.AccessExecute
	if have, _, err := stranger.Access(t.Context(), dir, all); err != nil || have != 0 {
		t.Errorf("%v: %v", have, err)
	}
	if have, _, err := f.Access(t.Context(), dir, all); err != nil || have != vfs.AccessRead|vfs.AccessLookup {
		t.Errorf("%v: %v", have, err)
	}
}
