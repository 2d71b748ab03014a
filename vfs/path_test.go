package vfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// resolveTree is /d/sub/file, links to it, and a chain of links l0 -> l1 -> ...
func resolveTree(t *testing.T) (vfs.FS, vfs.Handle) {
	t.Helper()
	f := memfs.New(memfs.Options{})
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	make := func(dir vfs.Handle, name string, how vfs.CreateHow) vfs.Handle {
		h, _, _, err := f.Create(t.Context(), dir, name, &how)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	link := func(dir vfs.Handle, name, target string) {
		make(dir, name, vfs.CreateHow{Type: vfs.TypeSymlink, Target: target})
	}
	d := make(root, "d", vfs.CreateHow{Type: vfs.TypeDir})
	sub := make(d, "sub", vfs.CreateHow{Type: vfs.TypeDir})
	make(sub, "file", vfs.CreateHow{Type: vfs.TypeReg})
	link(root, "rel", "d/sub")
	link(sub, "abs", "/d/sub/file")
	link(sub, "up", "../../d/sub/file")
	link(root, "self", "self")
	link(root, "gone", "nothing/there")
	for i := range vfs.MaxSymlinks + 1 {
		link(root, fmt.Sprintf("l%d", i), fmt.Sprintf("l%d", i+1))
	}
	make(root, fmt.Sprintf("l%d", vfs.MaxSymlinks+1), vfs.CreateHow{Type: vfs.TypeReg})
	return f, root
}

func TestResolve(t *testing.T) {
	f, root := resolveTree(t)
	file, err := vfs.Resolve(t.Context(), f, root, "d/sub/file", true)
	if err != nil || file.Name != "file" || file.Attr.Type != vfs.TypeReg {
		t.Fatalf("%+v, %v", file, err)
	}
	for _, path := range []string{
		"/d/sub/file", "d//sub/./file/", "rel/file", "rel/abs", "rel/up", "rel/../sub/file", "../../d/sub/file", "d/sub/../sub/abs",
	} {
		if r, err := vfs.Resolve(t.Context(), f, root, path, true); err != nil || r.Handle != file.Handle || r.Dir != file.Dir {
			t.Errorf("%s: %+v, %v", path, r, err)
		}
	}
	for _, path := range []string{"", "/", ".", "..", "d/.."} {
		if r, err := vfs.Resolve(t.Context(), f, root, path, true); err != nil || r.Handle != root {
			t.Errorf("%q is not the root: %v", path, err)
		}
	}
	if r, err := vfs.Resolve(t.Context(), f, root, "rel/abs", false); err != nil || r.Attr.Type != vfs.TypeSymlink || r.Name != "abs" {
		t.Errorf("a link not followed: %+v, %v", r, err)
	}
	if r, err := vfs.Resolve(t.Context(), f, root, "l1", true); err != nil || r.Attr.Type != vfs.TypeReg {
		t.Errorf("%d links: %v", vfs.MaxSymlinks, err)
	}
}

func TestResolveErrors(t *testing.T) {
	f, root := resolveTree(t)
	for path, want := range map[string]error{
		"d/none/file":                            fs.ErrNotExist,
		"gone":                                   fs.ErrNotExist,
		"self":                                   syscall.ELOOP,
		"l0":                                     syscall.ELOOP,
		"d/sub/file/x":                           vfs.ErrNotDir,
		"d/sub/file/..":                          vfs.ErrNotDir,
		strings.Repeat("d/../", vfs.MaxPath/5+1): vfs.ErrNameTooLong,
		strings.Repeat("n", vfs.MaxName+1):       vfs.ErrNameTooLong,
	} {
		_, err := vfs.Resolve(t.Context(), f, root, path, true)
		var pe *fs.PathError
		if !errors.Is(err, want) || !errors.As(err, &pe) {
			t.Errorf("%.20s: %v, want %v", path, err, want)
		}
	}
	_, err := vfs.Resolve(t.Context(), f, root, "d/none/file", true)
	if pe := (*fs.PathError)(nil); !errors.As(err, &pe) || pe.Path != "d/none" {
		t.Errorf("the path that failed: %v", err)
	}
}
