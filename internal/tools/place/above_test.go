package place

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestAbove: what is above a path of this host is what the resolved path names, up to the root;
// after Follow, what is above the link's target.
func TestAbove(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("a", "b"), filepath.Join(dir, "link")); err != nil {
		t.Skipf("NOT TESTED: no symbolic link can be made here: %v", err)
	}
	id := func(path string) uint64 {
		a, err := attrOf(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		return a.FileID
	}
	a, top := id(filepath.Join(dir, "a")), id(dir)
	for arg, want := range map[string][]uint64{"a/b": {a, top}, "a/b/new": {a, top}, "a": {top}, "link": {a, top}, "link/new": {a, top}} {
		p, err := Open(t.Context(), filepath.Join(dir, arg), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if arg == "link" {
			if _, _, err := p.Follow(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var got []uint64
		for attr := range p.Above(t.Context()) {
			got = append(got, attr.FileID)
		}
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Errorf("%s: above are %v, want %v first", arg, got, want)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
