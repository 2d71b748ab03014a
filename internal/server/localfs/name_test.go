//go:build linux

package localfs

import (
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestPathOf names what is open, by its name of now, and opens nothing for it.
func TestPathOf(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		f := open(t, t.TempDir(), o)
		r := root(t, f)
		d := mkdir(t, f, r, "d")
		x := mkfile(t, f, d, "file", "hello")
		content(t, f, x)
		if got, ok := f.PathOf(x); got != "d/file" || !ok {
			t.Errorf("%q, %v", got, ok)
		}
		if _, _, err := f.Rename(t.Context(), d, "file", r, "moved"); err != nil {
			t.Fatal(err)
		}
		if got, ok := f.PathOf(x); got != "moved" || !ok {
			t.Errorf("after a rename: %q, %v", got, ok)
		}
		if _, err := f.GetAttr(t.Context(), r, vfs.MaskV3); err != nil {
			t.Fatal(err)
		}
		if got, ok := f.PathOf(r); got != "" || !ok {
			t.Errorf("the root: %q, %v", got, ok)
		}
		f.fds.Forget(x)
		before := f.Snapshot()
		if got, ok := f.PathOf(x); ok {
			t.Errorf("not open: %q", got)
		}
		if after := f.Snapshot(); after != before {
			t.Errorf("%+v before, %+v after", before, after)
		}
	})
}
