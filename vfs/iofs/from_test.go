package iofs_test

import (
	"archive/zip"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

//go:embed *.go
var embedded embed.FS

// sources has files, directories and, as far as its FS shows them, links.
func sources() fstest.MapFS {
	long := strings.Repeat("all work and no play ", 5000)
	return fstest.MapFS{
		"empty":       {Mode: 0o644},
		"a/b/c/deep":  {Data: []byte("deep"), Mode: 0o600, ModTime: time.Unix(1_700_000_000, 5)},
		"a/long":      {Data: []byte(long), Mode: 0o644},
		"a/caf\u00e9": {Data: []byte("x"), Mode: 0o444},
		"link":        {Data: []byte("a/long"), Mode: 0o777 | fs.ModeSymlink},
		"a/dangling":  {Data: []byte("../nowhere"), Mode: 0o777 | fs.ModeSymlink},
		"program":     {Data: []byte("#!"), Mode: 0o4755 | fs.ModeSetuid},
	}
}

// plain hides all of an FS but what io/fs demands.
type plain struct{ fs fs.FS }

func (p plain) Open(name string) (fs.File, error) {
	f, err := p.fs.Open(name)
	if err != nil {
		return nil, err
	}
	if d, ok := f.(fs.ReadDirFile); ok {
		return struct{ fs.ReadDirFile }{d}, nil
	}
	return struct{ fs.File }{f}, nil
}

// seeks is plain, and its files can seek.
type seeks struct{ fs fs.FS }

func (p seeks) Open(name string) (fs.File, error) {
	f, err := p.fs.Open(name)
	if s, ok := f.(io.Seeker); ok && err == nil {
		return struct {
			fs.File
			io.Seeker
		}{f, s}, nil
	}
	return f, err
}

// onDisk is a directory with what the tree has.
func onDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, sources()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func zipped(t *testing.T) fs.FS {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	if err := errors.Join(w.AddFS(fstest.MapFS{"a/b": sources()["a/long"], "c": sources()["empty"]}), w.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFrom: every kind of io/fs.FS keeps the contract.
func TestFrom(t *testing.T) {
	root, err := os.OpenRoot(onDisk(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	unlinked := sources()
	delete(unlinked, "a/dangling") // it would not be found
	for name, f := range map[string]fs.FS{
		"MapFS": sources(), "DirFS": os.DirFS(onDisk(t)), "Root": root.FS(), "embed": embedded, "zip": zipped(t),
		"plain": plain{unlinked}, "seeks": seeks{unlinked},
	} {
		t.Run(name, func(t *testing.T) { vfstest.RunReadOnly(t, iofs.From(f)) })
	}
}

// find is the handle and the attributes of a path.
func find(t *testing.T, f vfs.FS, path string) (vfs.Handle, vfs.Attr, error) {
	t.Helper()
	root, a, err := f.Root(t.Context())
	if err != nil || path == "." {
		return root, a, err
	}
	r, err := vfs.Resolve(t.Context(), f, root, path, false)
	return r.Handle, r.Attr, err
}

func mustFind(t *testing.T, f vfs.FS, path string) (vfs.Handle, vfs.Attr) {
	t.Helper()
	h, a, err := find(t, f, path)
	if err != nil {
		t.Fatal(err)
	}
	return h, a
}

// openError is what opening a file to read it says.
func openError(t *testing.T, f vfs.FS, h vfs.Handle) error {
	t.Helper()
	file, _, err := f.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return err
	}
	_, _, err = file.ReadAt(t.Context(), make([]byte, 1), 0, nil)
	return errors.Join(err, file.Close(t.Context()))
}

// TestFromAttributes: what is shown of a file, and what is not.
func TestFromAttributes(t *testing.T) {
	before := time.Now()
	f := iofs.From(sources())
	if _, a := mustFind(t, f, "a/b/c/deep"); a.Mode != 0o600 || a.Size != 4 || !a.Mtime.Equal(time.Unix(1_700_000_000, 5)) || a.UID != 0 {
		t.Errorf("%+v", a)
	}
	if _, a := mustFind(t, f, "program"); a.Mode != 0o755 {
		t.Errorf("mode %o: a set-id bit would be root's", a.Mode)
	}
	if _, a := mustFind(t, f, "empty"); a.Mtime.Before(before) || a.Mtime.After(time.Now()) {
		t.Errorf("a file without a time is of %v", a.Mtime)
	}
}

// TestFromRights: modes hold, as of files of root.
func TestFromRights(t *testing.T) {
	f := iofs.From(fstest.MapFS{
		"public": {Data: []byte("x"), Mode: 0o444}, "private": {Data: []byte("x"), Mode: 0o600}, "group": {Data: []byte("x"), Mode: 0o640},
		"closed/file": {Data: []byte("x"), Mode: 0o444}, "closed": {Mode: fs.ModeDir | 0o700},
	})
	user, wheel, root := f.As(&vfs.Caller{UID: 1000, GID: 100}), f.As(&vfs.Caller{UID: 1000, Groups: []uint32{0}}), f.As(&vfs.Caller{})
	for name, want := range map[string][3]bool{"public": {true, true, true}, "private": {false, false, true}, "group": {false, true, true}} {
		h, _ := mustFind(t, f, name)
		for i, v := range []vfs.FS{user, wheel, root} {
			if err := openError(t, v, h); (err == nil) != want[i] || err != nil && !errors.Is(err, vfs.ErrAccess) {
				t.Errorf("%s for caller %d: %v", name, i, err)
			}
			if got, _, err := v.Access(t.Context(), h, vfs.AccessRead); (got != 0) != want[i] || err != nil {
				t.Errorf("%s for caller %d: access %#x, %v", name, i, got, err)
			}
		}
	}
	if _, _, err := find(t, user, "closed/file"); !errors.Is(err, vfs.ErrAccess) {
		t.Errorf("a look-up in a closed directory: %v", err)
	}
	closed, _ := mustFind(t, f, "closed")
	for _, err := range user.ReadDir(t.Context(), closed, vfs.Pos{}, 0, 0) {
		if !errors.Is(err, vfs.ErrAccess) {
			t.Errorf("a listing of it: %v", err)
		}
	}
}

// TestFromChanges: handles are those of paths. What is gone is stale, and what comes back at
// its path is known by its handle.
func TestFromChanges(t *testing.T) {
	m := sources()
	f := iofs.From(m)
	h, _ := mustFind(t, f, "a/long")
	kept := m["a/long"]
	delete(m, "a/long")
	if _, err := f.GetAttr(t.Context(), h, vfs.MaskV3); !errors.Is(err, vfs.ErrStale) {
		t.Errorf("what is gone: %v", err)
	}
	if err := openError(t, f, h); !errors.Is(err, vfs.ErrStale) {
		t.Errorf("what is gone is opened: %v", err)
	}
	m["a/long"] = kept
	if again, a := mustFind(t, f, "a/long"); again != h || a.Size != uint64(len(kept.Data)) {
		t.Error("another handle for the same path")
	}
	other := iofs.From(m)
	if _, err := other.GetAttr(t.Context(), h, vfs.MaskV3); !errors.Is(err, vfs.ErrBadHandle) {
		t.Errorf("a handle of another FS: %v", err)
	}
}

// names lists a directory by pages of so many entries, and calls between after each.
func names(t *testing.T, f vfs.FS, dir vfs.Handle, page int, between func()) (all []string) {
	t.Helper()
	var at vfs.Pos
	for {
		n := 0
		for e, err := range f.ReadDir(t.Context(), dir, at, vfs.MaskV3|vfs.MaskHandle, 0) {
			if err != nil {
				t.Fatal(err)
			}
			all, at = append(all, string(e.Name)), e.Next
			if n++; n == page {
				break
			}
		}
		if n < page {
			return all
		}
		between()
	}
}

// TestFromLargeDirectory: of 10,000 names each is listed once, page by page, while others
// come and go.
func TestFromLargeDirectory(t *testing.T) {
	m := fstest.MapFS{}
	const many = 10_000 // more than two batches
	for i := range many {
		m[fmt.Sprintf("stays-%d", i)] = &fstest.MapFile{Mode: 0o444}
		if i < 100 {
			m[fmt.Sprintf("goes-%d", i)] = &fstest.MapFile{Mode: 0o444}
		}
	}
	f := iofs.From(m)
	root, _ := mustFind(t, f, ".")
	i := 0
	all := names(t, f, root, 700, func() {
		delete(m, fmt.Sprintf("goes-%d", i))
		m[fmt.Sprintf("comes-%d", i)] = &fstest.MapFile{Mode: 0o444}
		i++
	})
	slices.Sort(all)
	if n := len(all); len(slices.Compact(all)) != n {
		t.Error("a name is listed twice")
	}
	stays := 0
	for _, name := range all {
		if strings.HasPrefix(name, "stays-") {
			stays++
		}
	}
	if stays != many {
		t.Errorf("%d of %d names are listed", stays, many)
	}
	// A listing that begins now has all that there is now, although batches are kept.
	if now := names(t, f, root, 700, func() {}); len(now) != len(m) {
		t.Errorf("%d names, want %d", len(now), len(m))
	}
}

// TestFromCookies: a position of another FS is refused.
func TestFromCookies(t *testing.T) {
	f := iofs.From(sources())
	root, _ := mustFind(t, f, ".")
	for _, err := range f.ReadDir(t.Context(), root, vfs.Pos{Cookie: 17}, 0, 0) {
		if !errors.Is(err, vfs.ErrBadCookie) {
			t.Errorf("%v, want %v", err, vfs.ErrBadCookie)
		}
	}
}
