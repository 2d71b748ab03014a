package iofs_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
)

func TestChange(t *testing.T) {
	m := sample(t)
	f := m.io()
	at := time.Unix(1e9, 0)
	for i, err := range []error{
		f.Mkdir("new", 0o750),
		f.MkdirAll("new/a/b/c", 0o700),
		f.MkdirAll("new/a/b/c", 0o700),
		f.MkdirAll(".", 0o700),
		f.MkdirAll("here/below", 0o700), // through a link
		f.WriteFile("new/file", []byte("contents"), 0o600),
		f.WriteFile("new/long", make([]byte, 100_000), 0o600),
		f.WriteFile("new/long", []byte("short"), 0o644),
		f.Symlink("../hello.txt", "new/link"),
		f.Link("new/file", "new/second"),
		f.Link("new/link", "new/secondlink"),
		f.Rename("new/second", "new/a/moved"),
		f.Rename("new/long", "new/file"), // over it
		f.Rename("new/a", "docs/a"),
		f.Chmod("new", 0o1711|fs.ModeSetgid|fs.ModeSticky),
		f.Chtimes("new/link", at, at),
		f.Chtimes("new/file", time.Time{}, at),
		f.Chown("hello.txt", 7, -1),
		f.Chown("hello.txt", -1, 8),
		f.Lchown("new/link", 9, 9),
		f.Truncate("docs/big", 3),
		f.Remove("docs/same"),
		f.Remove("docs/empty"),
		f.RemoveAll("nowhere"),
		f.RemoveAll("nowhere/at/all"),
	} {
		if err != nil {
			t.Errorf("step %d: %v", i, err)
		}
	}
	wantFile(t, f, "new/file", "short")
	wantFile(t, f, "docs/a/moved", "contents")
	wantFile(t, f, "docs/big", "012")
	var all []string
	err := fs.WalkDir(f, ".", func(path string, d fs.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if got := strings.Join(all, " "); err != nil || got !=
		". docs docs/a docs/a/b docs/a/b/c docs/a/moved docs/below docs/big docs/none hello.txt here new new/file new/link new/secondlink" {
		t.Errorf("%s, %v", got, err)
	}
	for name, want := range map[string]string{
		"new":       "dgtrwx--x--x 0 0",
		"hello.txt": "-rwxr-xr-x 7 8",
		"new/link":  "Lrwxrwxrwx 9 9",
		"new/file":  "-rw------- 0 0", // its mode was not new/long's second one
		"docs/a/b":  "drwx------ 0 0",
	} {
		info, err := f.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		a := info.Sys().(*vfs.Attr)
		if got := fmt.Sprint(info.Mode(), a.UID, a.GID); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{"hello.txt", "new/file"} { // new/link's times are those of what it leads to
		if info, err := f.Stat(name); err != nil || !info.ModTime().Equal(at) {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func TestChangeErrors(t *testing.T) {
	m := sample(t)
	f := m.io()
	nobody := f.As(&vfs.Caller{UID: 7, GID: 7})
	for i, c := range []struct {
		err  error
		want error
	}{
		{f.Mkdir("docs", 0o700), fs.ErrExist},
		{f.Mkdir("none/new", 0o700), fs.ErrNotExist},
		{f.Mkdir(".", 0o700), fs.ErrInvalid},
		{f.Mkdir("../x", 0o700), fs.ErrInvalid},
		{f.MkdirAll("hello.txt", 0o700), syscall.ENOTDIR},
		{f.MkdirAll("hello.txt/x", 0o700), syscall.ENOTDIR},
		{nobody.MkdirAll("docs/new/x", 0o700), fs.ErrPermission},
		{nobody.MkdirAll("docs/empty", 0o700), nil},
		{f.Remove("docs"), syscall.ENOTEMPTY},
		{f.Remove("nowhere"), fs.ErrNotExist},
		{f.Remove("."), fs.ErrInvalid},
		{f.RemoveAll("."), fs.ErrInvalid},
		{f.RemoveAll("hello.txt/x"), syscall.ENOTDIR},
		{nobody.RemoveAll("docs"), fs.ErrPermission},
		{f.Rename("nowhere", "new"), fs.ErrNotExist},
		{f.Rename("docs", "docs/below"), fs.ErrInvalid},
		{f.Rename("docs", "hello.txt"), syscall.ENOTDIR},
		{f.Rename("hello.txt", "docs"), syscall.EISDIR},
		{f.Rename(".", "new"), fs.ErrInvalid},
		{f.Link("docs", "new"), syscall.EISDIR},
		{f.Link("hello.txt", "docs/none"), fs.ErrExist},
		{f.Symlink("x", "hello.txt"), fs.ErrExist},
		{f.Symlink("", "new"), fs.ErrInvalid},
		{f.Chmod("nowhere", 0), fs.ErrNotExist},
		{nobody.Chmod("hello.txt", 0), fs.ErrPermission},
		{f.Chown("hello.txt", -2, 0), fs.ErrInvalid},
		{f.Truncate("hello.txt", -1), fs.ErrInvalid},
		{f.Truncate("docs", 0), syscall.EISDIR},
		{f.WriteFile("docs", nil, 0o600), syscall.EISDIR},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("step %d: %v, want %v", i, c.err, c.want)
		}
		pe, le := (*fs.PathError)(nil), (*os.LinkError)(nil)
		if c.want != nil && !errors.As(c.err, &pe) && !errors.As(c.err, &le) {
			t.Errorf("step %d: %v names no path", i, c.err)
		}
	}
	err := f.Rename("nowhere/at", "docs/x")
	if le := (*os.LinkError)(nil); !errors.As(err, &le) || le.Old != "nowhere/at" || le.New != "docs/x" || !errors.Is(le.Err, vfs.ErrNoEnt) {
		t.Errorf("%#v", err)
	}
	wantFile(t, f, "hello.txt", "hello, world\n")
}

// TestUnknownOutcomeOnce: a change that may have been made is not made again,
// whatever was remembered.
func TestUnknownOutcomeOnce(t *testing.T) {
	creates := 0
	mem := memfs.New(memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "create" {
			if creates++; creates > 1 {
				return fmt.Errorf("%w: %w", vfs.ErrStale, vfs.ErrUnknownOutcome)
			}
		}
		return nil
	}})
	f, err := iofs.Root(t.Context(), mem)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Mkdir("a", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.Mkdir("a/b", 0o700); !errors.Is(err, vfs.ErrUnknownOutcome) || creates != 2 {
		t.Errorf("%v after %d calls", err, creates-1)
	}
}

// grow makes a tree of dirs directories with files files in each, links between
// them, and names that are not UTF-8.
func (m *tree) grow(path string, depth, dirs, files int) {
	m.dir(path)
	for i := range files {
		m.make(fmt.Sprintf("%s/file \xff %d", path, i), vfs.CreateHow{Type: vfs.TypeReg})
	}
	m.link(path+"/up", "..")
	m.link(path+"/keep", "../../keep")
	if depth > 0 {
		for i := range dirs {
			m.grow(fmt.Sprintf("%s/%d", path, i), depth-1, dirs, files)
		}
	}
}

func TestRemoveAll(t *testing.T) {
	m := newTree(t)
	m.dir("keep")
	m.file("keep/file", "kept")
	m.grow("tree", 3, 3, 20)
	m.dir("large")
	for i := range 1000 {
		m.make(fmt.Sprintf("large/%d", i), vfs.CreateHow{Type: vfs.TypeReg})
	}
	m.link("link", "keep")
	f := m.io()
	for _, name := range []string{"tree", "large", "link"} {
		if err := f.RemoveAll(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	entries, err := f.ReadDir(".")
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	wantFile(t, f, "keep/file", "kept")
}

// TestRemoveAllGoesOn: what cannot be removed keeps nothing else.
func TestRemoveAllGoesOn(t *testing.T) {
	m := newTree(t)
	m.dir("a")
	m.file("a/1", "")
	m.dir("a/mine")
	m.file("a/mine/x", "")
	m.file("a/z", "")
	f := m.io()
	if err := errors.Join(f.Chmod("a", 0o777), f.Chown("a/mine", 0, 0)); err != nil {
		t.Fatal(err)
	}
	err := f.As(&vfs.Caller{UID: 7, GID: 7}).RemoveAll("a")
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v", err)
	}
	left, err := fs.Glob(f, "a/*")
	if err != nil || strings.Join(left, " ") != "a/mine" {
		t.Errorf("%q, %v", left, err)
	}
}

// TestRemoveAllEnds: a program that puts something into a directory each time that it is
// empty wins in the end.
func TestRemoveAllEnds(t *testing.T) {
	var mem *memfs.FS
	var root, dir vfs.Handle
	n := 0
	mem = memfs.New(memfs.Options{Fault: func(ctx context.Context, op string, h vfs.Handle) error {
		if op != "remove" || h != root || n == 100 {
			return nil
		}
		n++
		_, _, _, err := mem.Create(ctx, dir, fmt.Sprint(n), &vfs.CreateHow{Type: vfs.TypeReg})
		return err
	}})
	m := &tree{t, mem}
	m.dir("a")
	m.file("a/first", "")
	root = m.root()
	dir, _ = m.split("a/first")
	if err := m.io().RemoveAll("a"); !errors.Is(err, syscall.ENOTEMPTY) || n == 100 {
		t.Errorf("%v after %d times", err, n)
	}
}

// forgetful is a server to which a place in a listing means nothing once the
// directory has changed.
type forgetful struct {
	vfs.FS
	removed atomic.Bool
}

func (f *forgetful) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	f.removed.Store(true)
	return f.FS.Remove(ctx, dir, name, isDir)
}

func (f *forgetful) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	if f.removed.Swap(false) && from != (vfs.Pos{}) {
		return func(yield func(*vfs.Entry, error) bool) { yield(nil, vfs.ErrBadCookie) }
	}
	return f.FS.ReadDir(ctx, dir, from, want, maxBytes)
}

func TestRemoveAllForgetful(t *testing.T) {
	m, _ := many(t, memfs.Options{}, 2000)
	f := iofs.New(t.Context(), &forgetful{FS: m.fs}, m.root())
	if err := f.RemoveAll("many"); err != nil {
		t.Error(err)
	}
	if _, err := f.Lstat("many"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
