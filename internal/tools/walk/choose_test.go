package walk

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestChoose: what is refused is told once, and nothing of it is asked; what is returned for a directory comes
// with its entries.
func TestChoose(t *testing.T) {
	var left []string
	o := Options{
		Choose: func(in any, e *vfs.Entry) (any, bool) {
			path := string(e.Name)
			if in != nil {
				path = in.(string) + "/" + path
			}
			return path, path != "a/b" && path != "h"
		},
		LeftOut: func(d *Dir, e *vfs.Entry) { left = append(left, d.Path(string(e.Name))) },
	}
	l := newLog(t)
	l.onEnter = func(d *Dir) error {
		if want := d.Path(""); want != "." && d.Chosen != want || want == "." && d.Chosen != nil {
			t.Errorf("%s: %v", want, d.Chosen)
		}
		return nil
	}
	o.Parallel = 1
	if err := l.walk(small(t), o); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(sorted(l.entered), []string{".", "a", "c"}) || !slices.Equal(l.entries, []string{"a/g"}) {
		t.Errorf("entered %q, entries %q", l.entered, l.entries)
	}
	if !slices.Equal(sorted(left), []string{"a/b", "h"}) {
		t.Errorf("left out: %q", left)
	}
}

// TestAheadChoose: directories that are refused are not listed ahead, nor those below them.
func TestAheadChoose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := grow(100, 4, 3)
		l, left := newLog(t), 0
		err := l.walk(f.fs(), Options{
			Parallel: 1,
			Choose:   func(_ any, e *vfs.Entry) (any, bool) { return nil, string(e.Name) != "d3" && string(e.Name) != "d7" },
			LeftOut:  func(*Dir, *vfs.Entry) { left++ },
		})
		if err != nil {
			t.Fatal(err)
		}
		if left != 2 || f.calls[3]+f.calls[7] != 0 || len(l.entered) != f.all {
			t.Errorf("%d left out, %d and %d listings of them, %d entered by %d listings", left, f.calls[3], f.calls[7], len(l.entered), f.all)
		}
		for dir, n := range f.calls {
			if n != 1 {
				t.Errorf("%d is listed %d times", dir, n)
			}
		}
	})
}
