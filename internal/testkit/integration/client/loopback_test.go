package client

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
)

// put makes a file, and the directories on its way.
func put(t testing.TB, f vfs.FS, path string, data []byte) {
	t.Helper()
	ctx := t.Context()
	dir, _, err := f.Root(ctx)
	if err != nil {
		t.Fatal(err)
	}
	parts := bytes.Split([]byte(path), []byte("/"))
	for _, p := range parts[:len(parts)-1] {
		h, _, _, err := f.Lookup(ctx, dir, string(p))
		if errors.Is(err, vfs.ErrNoEnt) {
			h, _, _, err = f.Create(ctx, dir, string(p), &vfs.CreateHow{Type: vfs.TypeDir})
		}
		if err != nil {
			t.Fatal(err)
		}
		dir = h
	}
	file, _, err := f.Open(ctx, vfs.At{Dir: dir, Name: string(parts[len(parts)-1])}, &vfs.OpenHow{
		Access: vfs.ShareWrite,
		Create: &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateUnchecked},
		Trunc:  true,
	})
	if err != nil {
		t.Fatal(err)
	}
	var w vfs.Written
	if _, err := vfs.WriteFull(ctx, file, data, 0, vfs.FileSync, &w); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// get reads what path names below start.
func get(t testing.TB, f vfs.FS, path string) []byte {
	t.Helper()
	ctx := t.Context()
	root, _, err := f.Root(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r, err := vfs.Resolve(ctx, f, root, path, true)
	if err != nil {
		t.Fatal(err)
	}
	file, _, err := f.Open(ctx, vfs.At{H: r.Handle}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, r.Attr.Size+1)
	n, eof, err := vfs.ReadFull(ctx, file, data, 0)
	if err != nil || !eof {
		t.Fatalf("%s: %d bytes, eof %v, %v", path, n, eof, err)
	}
	if err := file.Close(ctx); err != nil {
		t.Fatal(err)
	}
	return data[:n]
}

// TestDialPlaces is about where a URL's root and target are.
func TestDialPlaces(t *testing.T) {
	mem := memfs.New(memfs.Options{Mode: 0o777})
	put(t, mem, "a/b/file", []byte("here"))
	root, _, err := mem.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"todir": "a/b", "tofile": "a/b/file", "nowhere": "x/y"} {
		how := &vfs.CreateHow{Type: vfs.TypeSymlink, Target: target}
		if _, _, _, err := mem.Create(t.Context(), root, name, how); err != nil {
			t.Fatal(err)
		}
	}
	// Of two exports neither answers to "/".
	port := serve(t, export.Export{Path: "/export", FS: mem}, export.Export{Path: "/more", FS: memfs.New(memfs.Options{})})
	for _, tc := range []struct{ path, target, file string }{
		{"/export", "", "a/b/file"},
		{"/export/", "", "a/b/file"},
		{"/export/a", "", "b/file"},
		{"//export/./a//b", "", "file"},
		{"/export/a/b/file", "file", "file"},
		{"/export/a/b/new", "new", "file"},
		{"/export/todir", "", "file"}, // MNT follows links to directories, as Linux' mountd does
		{"/export/todir/", "", "file"},
		{"/export/todir/file", "file", "file"},
		{"/export/tofile", "tofile", "tofile"},
		{"/export/nowhere", "nowhere", "a/b/file"},
	} {
		c := dial(t, "nfs://127.0.0.1:"+port+tc.path)
		if got := c.Target(); got != tc.target {
			t.Errorf("%s: target %q, want %q", tc.path, got, tc.target)
		}
		if got := get(t, c.FS(), tc.file); string(got) != "here" {
			t.Errorf("%s: %s holds %q", tc.path, tc.file, got)
		}
	}
	for path, want := range map[string]error{
		"/export/a/b":      nil,
		"/export/todir":    nil,
		"/export/a/b/new":  fs.ErrNotExist,
		"/export/a/b/file": syscall.ENOTDIR,
		"/export/tofile":   syscall.ENOTDIR,
		"/export/nowhere":  syscall.ENOTDIR,
	} {
		c := dial(t, "nfs://127.0.0.1:"+port+path)
		tree, err := c.Tree(t.Context())
		if !errors.Is(err, want) || (tree == nil) != (want != nil) {
			t.Errorf("the tree of %s: %v, want %v", path, err, want)
		}
		if err != nil {
			continue
		}
		if text, err := fs.ReadFile(tree, "file"); string(text) != "here" {
			t.Errorf("the tree of %s: %q, %v", path, text, err)
		}
	}
	for path, want := range map[string]error{
		"/export/none/":      fs.ErrNotExist,
		"/export/none/x":     fs.ErrNotExist,
		"/export/tofile/":    vfs.ErrNotDir,
		"/export/a/b/file/x": vfs.ErrNotDir,
		"/other":             fs.ErrNotExist,
	} {
		c, err := nfsbox.Dial(t.Context(), "nfs://127.0.0.1:"+port+path)
		if err == nil {
			t.Errorf("%s: mounted", path)
			err = c.Close()
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
}

// TestFS reads a tree through io/fs.
func TestFS(t *testing.T) {
	mem := memfs.New(memfs.Options{Mode: 0o777})
	put(t, mem, "plan/budget.csv", []byte("a,b\n1,2\n"))
	put(t, mem, "plan/empty", nil)
	put(t, mem, "more", bytes.Repeat([]byte("0123456789"), 1000)) // TestFS reads it byte by byte
	c := dial(t, "nfs://127.0.0.1:"+serve(t, export.Export{Path: "/", FS: mem})+"/")
	root, _, err := c.FS().Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(iofs.New(t.Context(), c.FS(), root), "plan/budget.csv", "plan/empty", "more"); err != nil {
		t.Error(err)
	}
}

// TestReadOnlyURL changes nothing.
func TestReadOnlyURL(t *testing.T) {
	mem := memfs.New(memfs.Options{Mode: 0o777})
	put(t, mem, "file", []byte("kept"))
	c := dial(t, "nfs://127.0.0.1:"+serve(t, export.Export{Path: "/", FS: mem})+"/?readonly")
	root, _, err := c.FS().Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.FS().Remove(t.Context(), root, "file", false); !errors.Is(err, vfs.ErrROFS) {
		t.Errorf("remove: %v", err)
	}
	if got := get(t, c.FS(), "file"); string(got) != "kept" {
		t.Errorf("%q", got)
	}
}

// TestExports lists what a server offers.
func TestExports(t *testing.T) {
	port := serve(t, export.Export{Path: "/a", FS: memfs.New(memfs.Options{})}, export.Export{Path: "/b", FS: memfs.New(memfs.Options{})})
	list, err := nfsbox.Exports(t.Context(), "nfs://127.0.0.1:"+port)
	if err != nil || len(list) != 2 || list[0].Path != "/a" || list[1].Path != "/b" {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestCancelledReadLetsGo cancels READs that the server holds back, and makes
// sure that their late replies reach nobody's buffer and cost no connection.
func TestCancelledReadLetsGo(t *testing.T) {
	const size, poison = 256 << 10, 0xdb
	held, release := make(chan struct{}), make(chan struct{})
	hold := func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "read" {
			select {
			case held <- struct{}{}:
				<-release
			case <-release:
			}
		}
		return nil
	}
	mem := memfs.New(memfs.Options{Mode: 0o777, Fault: hold})
	put(t, mem, "file", bytes.Repeat([]byte{1}, size))
	c := dial(t, "nfs://127.0.0.1:"+serve(t, export.Export{Path: "/", FS: mem})+"/")
	root, _, err := c.FS().Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file, _, err := c.FS().Open(t.Context(), vfs.At{Dir: root, Name: "file"}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		t.Fatal(err)
	}
	const readers = 8
	ctx, cancel := context.WithCancel(t.Context())
	buffers := make([][]byte, readers)
	done := make(chan error)
	for i := range buffers {
		buffers[i] = make([]byte, size)
		go func() {
			_, _, err := file.ReadAt(ctx, buffers[i], 0, nil)
			for j := range buffers[i] {
				buffers[i][j] = poison
			}
			done <- err
		}()
	}
	for range readers {
		<-held
	}
	cancel()
	for range readers {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
	close(release)
	// The replies to these come behind the late ones.
	whole := make([]byte, size)
	for range readers {
		if n, _, err := vfs.ReadFull(t.Context(), file, whole, 0); n != size || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	for i, b := range buffers {
		if !bytes.Equal(b, bytes.Repeat([]byte{poison}, size)) {
			t.Errorf("buffer %d was written to after its call had returned", i)
		}
	}
	if err := file.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if s := c.Stats(); s.Reconnects != 0 || s.Cancelled < readers {
		t.Errorf("%+v", s)
	}
}
