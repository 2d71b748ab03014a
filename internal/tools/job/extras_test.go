package job

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/base/filter"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// syncedBy is a sync with --delete and this filter, which nothing ends early.
func syncedBy(t *testing.T, src, dst *tree, f *filter.Filter) (Summary, *events) {
	t.Helper()
	o, v := options(t, src, dst, "")
	o.Sync, o.Filter = &SyncOptions{Delete: new(DeleteOptions)}, f
	sum, err := Copy(t.Context(), o)
	if err != nil {
		t.Fatal(err, v)
	}
	return sum, v
}

// TestSyncDeleteEmptyButLeftOut: a source that has nothing but what is left out is empty.
func TestSyncDeleteEmptyButLeftOut(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.file(".snapshot/f", 0o644, nil)
	src.file("f.tmp", 0o644, nil)
	for _, path := range []string{".snapshot/f", "f.tmp", "precious", "a/precious"} {
		dst.file(path, 0o644, nil)
	}
	was := dst.list(dst.root)
	o, v := options(t, src, dst, "")
	o.Sync, o.Filter = &SyncOptions{Delete: new(DeleteOptions)}, rules(t, "- *.tmp\n")
	if sum, err := Copy(t.Context(), o); !errors.Is(err, ErrEmpty) || sum.ExitCode(err) != ExitIncomplete {
		t.Errorf("%+v, %v\n%v", sum, err, v)
	}
	if d := diff(was, dst.list(dst.root)); d != "" {
		t.Error(d)
	}
}

// TestSyncDeleteSourceEmpties: what the source loses while a sync goes on stays in the destination, and
// that is told. Only what the source lacked from the beginning is deleted.
func TestSyncDeleteSourceEmpties(t *testing.T) {
	var src *tree
	var begun atomic.Bool
	empty := func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "read" && begun.CompareAndSwap(false, true) {
			for _, name := range []string{"a", "b"} {
				new(gardener).fell(src, src.root, name, src.at(name), vfs.TypeDir)
			}
		}
		return nil
	}
	begun.Store(true)
	src, dst := doomed(t, memfs.Options{Fault: empty}, memfs.Options{})
	src.file("z/new", 0o644, pattern(100, 1))
	had := src.list(src.root)
	begun.Store(false)
	sum, v := syncedBy(t, src, dst, nil)
	if sum.Deleted > doomedObjects || !strings.Contains(v.String(), KindNotDeleted) {
		t.Errorf("%+v\n%v", sum, v)
	}
	for path := range had {
		if _, err := vfs.Resolve(t.Context(), dst.fs, dst.root, path, false); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if sum, _ := syncedBy(t, src, dst, nil); sum.Deleted == 0 {
		t.Errorf("when the source lacks it from the beginning: %+v", sum)
	}
	alikeTrees(t, src, dst)
}

// TestSyncDeleteLeavesOut: a name that only the destination has and that is left out is nothing that the
// source has lost: it is not told of as such.
func TestSyncDeleteLeavesOut(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.file("k", 0o644, nil)
	for _, path := range []string{"k", "gone", "keep.me", ".snapshot/f"} {
		dst.file(path, 0o644, nil)
	}
	sum, v := syncedBy(t, src, dst, rules(t, "- *.me\n"))
	if sum.Deleted != 1 || strings.Contains(v.String(), KindNotDeleted) {
		t.Errorf("%+v\n%v", sum, v)
	}
	for _, path := range []string{"k", "keep.me", ".snapshot/f"} {
		if _, err := vfs.Resolve(t.Context(), dst.fs, dst.root, path, false); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSyncDeleteListedMissing: where a listed path is not there, nothing is deleted.
func TestSyncDeleteListedMissing(t *testing.T) {
	src, dst := doomed(t, memfs.Options{}, memfs.Options{})
	all, err := filter.ReadList("list", strings.NewReader("a\nb/c/old\n"), false)
	if err != nil {
		t.Fatal(err)
	}
	f, err := filter.New(filter.Options{List: all})
	if err != nil {
		t.Fatal(err)
	}
	if sum, v := syncedBy(t, src, dst, f); sum.Deleted > 0 || !strings.Contains(v.String(), KindNotDeleted) {
		t.Errorf("%+v\n%v", sum, v)
	}
	dst.at("b/c/old/x/y")
	dst.at("a/old")
}

// TestSyncDeleteKeptInTheWay: a file whose name a directory has in which something is protected is not
// copied, and has failed.
func TestSyncDeleteKeptInTheWay(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.file("same", 0o644, nil)
	src.file("x", 0o644, []byte("new"))
	src.settle()
	dst.file("x/p.keep", 0o644, nil)
	dst.file("x/q", 0o644, nil)
	dst.file("same", 0o644, nil)
	sum, v := syncedBy(t, src, dst, rules(t, "- *.keep\n"))
	if sum.Errors != 1 || !strings.Contains(v.String(), `"x": a directory has the name`) {
		t.Errorf("%+v\n%v", sum, v)
	}
	dst.at("x/p.keep")
}

// TestSyncDeleteBesideTheSource: a source in a directory that would be deleted is found before anything
// is.
func TestSyncDeleteBesideTheSource(t *testing.T) {
	dst := mem(t, memfs.Options{})
	for _, path := range []string{"a", "old/a", "old/b", "old/in/a", "old/z/b"} {
		dst.file(path, 0o644, []byte("a"))
	}
	src := &tree{t, dst.fs, dst.at("old/in")}
	was := dst.list(dst.root)
	o, v := options(t, src, dst, "")
	o.Sync = &SyncOptions{Delete: new(DeleteOptions)}
	sum, err := Copy(t.Context(), o)
	if !errors.Is(err, ErrHoldsSource) || sum.Deleted > 0 {
		t.Errorf("%v, %+v\n%v", err, sum, v)
	}
	for path := range was {
		dst.at(path)
	}
}
