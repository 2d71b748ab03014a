package export

import (
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestAt finds the export of a handle, and nothing of one that is not ours.
func TestAt(t *testing.T) {
	fs := memory()
	table := testTable(t, Key{}, Export{Path: "/a", FS: memory()}, Export{Path: "/b", FS: fs})
	sealed, _, err := table.Mount(t.Context(), nil, "/b")
	if err != nil {
		t.Fatal(err)
	}
	root, _, err := fs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	called := false
	if !table.At(sealed, func(path string, got vfs.FS, h vfs.Handle) {
		called = path == "/b" && got == vfs.FS(fs) && h == root
	}) || !called {
		t.Error("not found")
	}
	altered := sealed
	altered.Bytes()[altered.Len()-1] ^= 1
	if table.At(altered, func(string, vfs.FS, vfs.Handle) { t.Error("called") }) {
		t.Error("found")
	}
	if err := table.Drain(t.Context(), fs); err == nil {
		t.Error("drained what is exported")
	}
}
