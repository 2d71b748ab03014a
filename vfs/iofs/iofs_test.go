package iofs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
)

// tree is a file system under construction.
type tree struct {
	tb testing.TB
	fs vfs.FS
}

func newTree(tb testing.TB) *tree { return &tree{tb, memfs.New(memfs.Options{})} }

// make makes path, its parents having been made.
func (m *tree) make(path string, how vfs.CreateHow) vfs.Handle {
	m.tb.Helper()
	ctx := context.Background()
	root := m.root()
	dir, name := ".", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		dir, name = path[:i], path[i+1:]
	}
	r, err := vfs.Resolve(ctx, m.fs, root, dir, true)
	if err != nil {
		m.tb.Fatal(err)
	}
	if how.Set.Valid == 0 {
		how.Set = vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o755}
	}
	h, _, _, err := m.fs.Create(ctx, r.Handle, name, &how)
	if err != nil {
		m.tb.Fatal(path, err)
	}
	return h
}

func (m *tree) root() vfs.Handle {
	root, _, err := m.fs.Root(context.Background())
	if err != nil {
		m.tb.Fatal(err)
	}
	return root
}

func (m *tree) dir(path string) { m.make(path, vfs.CreateHow{Type: vfs.TypeDir}) }

func (m *tree) link(path, target string) {
	m.make(path, vfs.CreateHow{Type: vfs.TypeSymlink, Target: target})
}

func (m *tree) file(path, contents string) {
	m.tb.Helper()
	ctx := context.Background()
	h := m.make(path, vfs.CreateHow{Type: vfs.TypeReg})
	f, _, err := m.fs.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite})
	if err != nil {
		m.tb.Fatal(err)
	}
	var w vfs.Written
	if _, err := vfs.WriteFull(ctx, f, []byte(contents), 0, vfs.FileSync, &w); err != nil {
		m.tb.Fatal(err)
	}
	if err := f.Close(ctx); err != nil {
		m.tb.Fatal(err)
	}
}

// split is the directory that holds path, and the name there.
func (m *tree) split(path string) (dir vfs.Handle, name string) {
	m.tb.Helper()
	parent, name, ok := strings.Cut(path, "/")
	if !ok {
		return m.root(), path
	}
	h, _, _, err := m.fs.Lookup(context.Background(), m.root(), parent)
	if err != nil {
		m.tb.Fatal(err)
	}
	return h, name
}

// rename and remove are what another client does.
func (m *tree) rename(from, to string) {
	m.tb.Helper()
	a, from := m.split(from)
	b, to := m.split(to)
	if _, _, err := m.fs.Rename(context.Background(), a, from, b, to); err != nil {
		m.tb.Fatal(err)
	}
}

func (m *tree) remove(path string, isDir bool) {
	m.tb.Helper()
	dir, name := m.split(path)
	if _, err := m.fs.Remove(context.Background(), dir, name, isDir); err != nil {
		m.tb.Fatal(err)
	}
}

func (m *tree) io() *iofs.FS { return iofs.New(context.Background(), m.fs, m.root()) }

func sample(tb testing.TB) *tree { return sampleOf(tb, 200_000) }

// sampleOf is sample with a large file of so many times 16 bytes.
func sampleOf(tb testing.TB, n int) *tree {
	m := newTree(tb)
	m.file("hello.txt", "hello, world\n")
	m.dir("docs")
	m.dir("docs/empty")
	m.file("docs/big", strings.Repeat("0123456789abcdef", n))
	m.file("docs/none", "")
	m.link("docs/same", "big")
	m.link("here", "docs")
	return m
}

func TestFS(t *testing.T) {
	m := sampleOf(t, 500) // TestFS reads it byte by byte
	if err := fstest.TestFS(m.io(), "hello.txt", "docs/big", "docs/none", "docs/same", "here", "docs/empty"); err != nil {
		t.Fatal(err)
	}
	sub, err := m.io().Sub("docs")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.ReadFile(sub, "big"); err != nil {
		t.Error(err)
	}
	// What the link leads to lies outside of the smaller tree.
	m.link("docs/up", "../hello.txt")
	if _, err := fs.ReadFile(sub, "up"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a link out of a Sub: %v", err)
	}
}

func TestLinksStayInside(t *testing.T) {
	m := sample(t)
	m.link("abs", "/hello.txt")
	m.link("above", "../../hello.txt")
	m.link("loop", "loop")
	m.link("docs/up", "../hello.txt")
	m.link("docs/back", "../docs/./up")
	f := m.io()
	for name, want := range map[string]error{"abs": fs.ErrPermission, "above": fs.ErrPermission, "loop": syscall.ELOOP} {
		if _, err := f.Open(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if _, err := f.Lstat(name); err != nil {
			t.Errorf("Lstat(%s): %v", name, err)
		}
	}
	if b, err := f.ReadFile("here/back"); err != nil || string(b) != "hello, world\n" {
		t.Errorf("links through links: %q, %v", b, err)
	}
	if s, err := f.ReadLink("abs"); err != nil || s != "/hello.txt" {
		t.Errorf("ReadLink: %q, %v", s, err)
	}
}

func TestErrors(t *testing.T) {
	f := sample(t).io()
	for _, c := range []struct {
		do   func() error
		want error
	}{
		{func() error { _, err := f.Open("nowhere"); return err }, fs.ErrNotExist},
		{func() error { _, err := f.Open("../x"); return err }, fs.ErrInvalid},
		{func() error { _, err := f.Open("hello.txt/x"); return err }, syscall.ENOTDIR},
		{func() error { _, err := f.Open(strings.Repeat("docs/", vfs.MaxPath/5) + "x"); return err }, syscall.ENAMETOOLONG},
		{func() error { _, err := f.Open(strings.Repeat("n", vfs.MaxName+1)); return err }, syscall.ENAMETOOLONG},
		{func() error { _, err := f.ReadDir("hello.txt"); return err }, syscall.ENOTDIR},
		{func() error { _, err := f.ReadFile("docs"); return err }, syscall.EISDIR},
		{func() error { _, err := f.ReadLink("docs"); return err }, fs.ErrInvalid},
		{func() error { _, err := f.Sub("hello.txt"); return err }, syscall.ENOTDIR},
	} {
		err := c.do()
		var pe *fs.PathError
		if !errors.Is(err, c.want) || !errors.As(err, &pe) {
			t.Errorf("%v, want a PathError that is %v", err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := f.WithContext(ctx).Open("hello.txt"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

func TestFile(t *testing.T) {
	file, err := sample(t).io().Open("docs/big")
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if n, err := file.(io.WriterTo).WriteTo(&buf); n != 3_200_000 || err != nil {
		t.Errorf("WriteTo: %d, %v", n, err)
	}
	s := file.(io.Seeker)
	if at, err := s.Seek(-3, io.SeekEnd); at != 3_199_997 || err != nil {
		t.Errorf("Seek: %d, %v", at, err)
	}
	if b, err := io.ReadAll(file); string(b) != "def" || err != nil {
		t.Errorf("the last bytes: %q, %v", b, err)
	}
	if _, err := s.Seek(-1, io.SeekStart); err == nil {
		t.Error("Seek before the start succeeds")
	}
	p := make([]byte, 4)
	if n, err := file.(io.ReaderAt).ReadAt(p, 16*1000+3); n != 4 || err != nil || string(p) != "3456" {
		t.Errorf("ReadAt: %q, %v", p[:n], err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if _, err := file.Read(p); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Read after Close: %v", err)
	}
	if err := file.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Close after Close: %v", err)
	}
}

// TestOddNames: what is not UTF-8 is shown, and found again.
func TestOddNames(t *testing.T) {
	m := newTree(t)
	names := []string{"plain", "latin\xe9", "\xff\xfe", "quote\u201bE9", "\u201b", "tab\tnew\nline", "caf\u00e9", "..."}
	for _, name := range names {
		m.file(name, "in "+name)
		m.dir("d" + name)
		m.file("d"+name+"/"+name, "")
	}
	f := m.io()
	entries, err := f.ReadDir(".")
	if err != nil || len(entries) != 2*len(names) {
		t.Fatalf("%v, %v", entries, err)
	}
	var all []string
	err = fs.WalkDir(f, ".", func(path string, d fs.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil || len(all) != 1+3*len(names) {
		t.Errorf("WalkDir: %q, %v", all, err)
	}
	if err := fstest.TestFS(f, all[1:]...); err != nil {
		t.Error(err)
	}
	m.file("back\\slash", "") // which TestFS does not like, and io/fs allows
	if info, err := f.Stat("back\\slash"); err != nil || info.Name() != "back\\slash" {
		t.Errorf("%v, %v", info, err)
	}
	if b, err := f.ReadFile("latin\u201bE9"); err != nil || string(b) != "in latin\xe9" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestFileMode(t *testing.T) {
	for _, c := range []struct {
		attr vfs.Attr
		want string
	}{
		{vfs.Attr{Type: vfs.TypeReg, Mode: 0o644}, "-rw-r--r--"},
		{vfs.Attr{Type: vfs.TypeDir, Mode: 0o1777}, "dtrwxrwxrwx"},
		{vfs.Attr{Type: vfs.TypeReg, Mode: 0o6755}, "ugrwxr-xr-x"},
		{vfs.Attr{Type: vfs.TypeSymlink, Mode: 0o777}, "Lrwxrwxrwx"},
		{vfs.Attr{Type: vfs.TypeChar, Mode: 0o600}, "Dcrw-------"},
		{vfs.Attr{Type: vfs.TypeFIFO, Mode: 0o600}, "prw-------"},
		{vfs.Attr{Type: 99}, "?---------"},
	} {
		if got := iofs.FileMode(&c.attr).String(); got != c.want {
			t.Errorf("%v %o: %s, want %s", c.attr.Type, c.attr.Mode, got, c.want)
		}
	}
}

func TestInfo(t *testing.T) {
	m := newTree(t)
	at := time.Unix(1e9, 500)
	m.make("f", vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode | vfs.MaskMtime, Mode: 0o640, Mtime: at}})
	info, err := m.io().Stat("f")
	if err != nil || !info.ModTime().Equal(at) || info.Mode() != 0o640 || info.Name() != "f" {
		t.Errorf("%v, %v", info, err)
	}
	if a, ok := info.Sys().(*vfs.Attr); !ok || a.Mode != 0o640 {
		t.Errorf("Sys: %#v", info.Sys())
	}
}
