package export

import (
	"context"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// lazyFS notes what is made stable.
type lazyFS struct {
	*memfs.FS
	syncs, commits, stableWrites *int
}

func newLazyFS() *lazyFS {
	return &lazyFS{FS: memory(), syncs: new(int), commits: new(int), stableWrites: new(int)}
}

func (f *lazyFS) As(*vfs.Caller) vfs.FS { return f }

func (f *lazyFS) Sync(context.Context, vfs.Handle) error {
	*f.syncs++
	return nil
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
	if how != vfs.Unstable {
		*f.fs.stableWrites++
	}
	return f.File.WriteAt(ctx, p, off, how, w)
}

func (f *lazyFile) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	*f.fs.commits++
	return f.File.Commit(ctx, off, n, w)
}

// useAll writes, commits and changes names, and returns what the writes and the commit
// reported.
func useAll(t *testing.T, v vfs.FS) (writes [3]vfs.Written, commit vfs.Written) {
	t.Helper()
	ctx := t.Context()
	root, h := put(t, v, "f")
	f, _, err := v.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite, Trunc: true})
	if err != nil {
		t.Fatal(err)
	}
	for how := range writes {
		if n, err := f.WriteAt(ctx, []byte("hello"), 0, vfs.Stability(how), &writes[how]); n != 5 || err != nil {
			t.Errorf("write: %d, %v", n, err)
		}
	}
	if err := f.Commit(ctx, 0, 0, &commit); err != nil {
		t.Error(err)
	}
	if _, err := f.Truncate(ctx, 3); err != nil {
		t.Error(err)
	}
	if err := f.Close(ctx); err != nil {
		t.Error(err)
	}
	if _, err := v.SetAttr(ctx, h, &vfs.SetAttr{}, nil); err != nil {
		t.Error(err)
	}
	if _, _, err := v.Link(ctx, h, root, "g"); err != nil {
		t.Error(err)
	}
	if _, _, err := v.Rename(ctx, root, "g", root, "h"); err != nil {
		t.Error(err)
	}
	if _, err := v.Remove(ctx, root, "h", false); err != nil {
		t.Error(err)
	}
	return writes, commit
}

// TestAsync answers everything as stable and syncs nothing.
func TestAsync(t *testing.T) {
	fs := newLazyFS()
	table := testTable(t, Key{1}, Export{Path: "/", FS: fs, Async: true})
	writes, commit := useAll(t, table.As(nil))
	if *fs.syncs+*fs.commits+*fs.stableWrites != 0 {
		t.Errorf("%d syncs, %d commits, %d stable writes", *fs.syncs, *fs.commits, *fs.stableWrites)
	}
	for how, w := range writes {
		if w.Committed != vfs.FileSync || w.Verf != commit.Verf {
			t.Errorf("a write that asks for %d is answered %+v", how, w)
		}
	}
	if commit.Committed != vfs.FileSync || !commit.WCC.After.Has(vfs.MaskSize) || commit.WCC.After.Size != 5 {
		t.Errorf("commit is answered %+v", commit)
	}
}

// TestSyncIsSync is the same work on an export that keeps its promises.
func TestSyncIsSync(t *testing.T) {
	fs := newLazyFS()
	table := testTable(t, Key{1}, Export{Path: "/", FS: fs})
	writes, commit := useAll(t, table.As(nil))
	if *fs.commits != 1 || *fs.stableWrites != 2 || *fs.syncs < 7 {
		t.Errorf("%d syncs, %d commits, %d stable writes", *fs.syncs, *fs.commits, *fs.stableWrites)
	}
	if writes[0].Committed != vfs.Unstable || writes[0].Verf != commit.Verf {
		t.Errorf("%+v, %+v", writes[0], commit)
	}
}

// TestUnstable checks that one view leaves out the syncs of names and attributes, and
// that bytes are as stable as they are asked to be.
func TestUnstable(t *testing.T) {
	fs := newLazyFS()
	table := testTable(t, Key{1}, Export{Path: "/", FS: fs})
	v := table.view(origin{local: true}, nil)
	writes, commit := useAll(t, v.Unstable())
	if *fs.commits != 1 || *fs.stableWrites != 2 || *fs.syncs != 0 {
		t.Errorf("%d syncs, %d commits, %d stable writes", *fs.syncs, *fs.commits, *fs.stableWrites)
	}
	if writes[0].Committed != vfs.Unstable || writes[0].Verf != commit.Verf {
		t.Errorf("%+v, %+v", writes[0], commit)
	}
	if useAll(t, v); *fs.syncs < 7 {
		t.Errorf("the view itself: %d syncs", *fs.syncs)
	}
}

// TestIntoAsync checks that the verifier changes when an export becomes async, so that
// clients write again what was unstable.
func TestIntoAsync(t *testing.T) {
	fs := newLazyFS()
	table := testTable(t, Key{1}, Export{Path: "/", FS: fs})
	before, _ := useAll(t, table.As(nil))
	if err := table.Replace(Export{Path: "/", FS: fs, Async: true}); err != nil {
		t.Fatal(err)
	}
	_, commit := useAll(t, table.As(nil))
	if commit.Verf == before[0].Verf || commit.Verf == (vfs.Verifier{}) {
		t.Errorf("the verifier is still %x", commit.Verf)
	}
}
