package walk

import (
	"iter"
	"slices"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestOneFileSystem: a directory of another file system than the root's is entered and left, and no call lists it, be it ahead
// of its turn or when a stale directory has given way to it.
func TestOneFileSystem(t *testing.T) {
	mounted := func(e *vfs.Entry) *vfs.Entry {
		e.Attr.FSID = [2]uint64{9, 9}
		return e
	}
	f := invented(func(dir uint64, _ vfs.Pos) iter.Seq2[*vfs.Entry, error] {
		return func(yield func(*vfs.Entry, error) bool) {
			switch dir {
			case 1:
				_ = yield(mounted(entry("mnt", 2, vfs.TypeDir, 1)), nil) && yield(entry("d", 3, vfs.TypeDir, 2), nil) &&
					yield(entry("late", 5, vfs.TypeDir, 3), nil)
			case 3:
				_ = yield(mounted(entry("below", 4, vfs.TypeDir, 1)), nil) && yield(entry("f", 7, vfs.TypeReg, 2), nil)
			case 5:
				yield(nil, vfs.ErrStale) // something was mounted on it
			default:
				t.Errorf("object %d is listed", dir)
			}
		}
	})
	f.lookup = func(vfs.Handle, string) (vfs.Handle, vfs.Attr, error) {
		e := mounted(entry("late", 6, vfs.TypeDir, 0))
		return e.Handle, e.Attr, nil
	}
	l := newLog(t)
	var told []string
	if err := l.walk(f, Options{Parallel: 1, OneFileSystem: true, Elsewhere: func(d *Dir) { told = append(told, d.Path("")) }}); err != nil {
		t.Fatal(err)
	}
	want := []string{".", "d", "d/below", "late", "mnt"}
	if !slices.Equal(sorted(l.entered), want) || !slices.Equal(sorted(l.left), want) || !slices.Equal(l.entries, []string{"d/f"}) {
		t.Errorf("entered %q, left %q, entries %q", l.entered, l.left, l.entries)
	}
	if !slices.Equal(sorted(told), []string{"d/below", "late", "mnt"}) || len(l.faults)+len(l.incomplete) > 0 {
		t.Errorf("told of %q; faults %v, incomplete %v", told, l.faults, l.incomplete)
	}
}
