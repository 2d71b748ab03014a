//go:build linux

package localfs

import (
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

func TestBasics(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		f := open(t, t.TempDir(), o)
		r := root(t, f)
		d := mkdir(t, f, r, "d")
		x := mkfile(t, f, d, "file", "hello")
		if got := content(t, f, x); got != "hello" {
			t.Errorf("content %q", got)
		}
		y, attr, _, err := f.Lookup(t.Context(), d, "file")
		if err != nil || y != x || attr.Size != 5 {
			t.Errorf("Lookup: %v %v %d %v", y, x, attr.Size, err)
		}
		if _, _, err := f.Rename(t.Context(), d, "file", r, "moved"); err != nil {
			t.Fatal(err)
		}
		if got := content(t, f, x); got != "hello" {
			t.Errorf("content after rename %q", got)
		}
		n := 0
		for e, err := range f.ReadDir(t.Context(), r, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			if string(e.Name) == "moved" && e.Handle != x {
				t.Errorf("listed handle %v, want %v", e.Handle, x)
			}
		}
		if n != 2 {
			t.Errorf("%d entries", n)
		}
		if _, err := f.Remove(t.Context(), r, "moved", false); err != nil {
			t.Fatal(err)
		}
		_, err = f.GetAttr(t.Context(), x, vfs.MaskV3)
		wantErr(t, err, vfs.ErrStale)
		p, _, _, err := f.Lookup(t.Context(), d, "..")
		if err != nil || p != r {
			t.Errorf("..: %v %v", p, err)
		}
		if err := f.Sync(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	})
}
