package job

import (
	"slices"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestCopyDryRun: a copy that changes nothing says what the copy then does, and fails where that fails.
func TestCopyDryRun(t *testing.T) {
	var to ops
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{Fault: to.fault})
	few(src)
	src.file("way/a", 0o644, nil)
	src.file("new/b", 0o644, []byte("b"))
	src.file("taken", 0o644, nil)
	dst.file("e/f1", 0o600, []byte("old"))
	dst.dir("taken/by/a/directory")
	dst.file("way", 0o644, nil)
	was := dst.list(dst.root)
	to.take()
	o, v := options(t, src, dst, "")
	o.DryRun = true
	would, err := Copy(t.Context(), o)
	for op, n := range to.take() {
		if n > 0 && slices.Contains(changing, op) {
			t.Errorf("%d calls of %s", n, op)
		}
	}
	if d := diff(was, dst.list(dst.root)); d != "" || err != nil {
		t.Errorf("%v, %s", err, d)
	}
	var told []string
	for _, e := range v.list {
		if e.Type == eventWould {
			told = append(told, e.Path)
		}
	}
	for _, path := range []string{"e/f1", "new", "new/b"} {
		if !slices.Contains(told, path) {
			t.Errorf("%s is not told of: %q", path, told)
		}
	}
	for _, path := range []string{".", "e", "taken", "way", "way/a"} {
		if slices.Contains(told, path) {
			t.Errorf("%s is told of", path)
		}
	}
	o, _ = options(t, src, dst, "")
	did, err := Copy(t.Context(), o)
	if err != nil || would.Errors != 2 || did.Errors != 2 || did.Dirs != would.Dirs || did.Files+did.Hardlinks != would.Files || did.Symlinks != would.Symlinks ||
		did.Nodes != would.Nodes {
		t.Errorf("it would do\n%+v, and has done\n%+v, %v", would, did, err)
	}
}

// TestSyncDryRunLinks: a name that has the bytes, and would become a link to another, is one that would be copied.
func TestSyncDryRunLinks(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	for _, name := range []string{"a", "b", "c"} {
		dst.file(name, 0o644, []byte("same"))
	}
	a := src.file("a", 0o644, []byte("same"))
	src.link(a, "b")
	src.file("c", 0o644, []byte("same"))
	for _, tr := range []*tree{src, dst} {
		for _, name := range []string{"a", "b", "c"} {
			tr.set(tr.at(name), vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: time.Unix(1e9, 0)})
		}
	}
	run := func(dry bool) Summary {
		t.Helper()
		o, _ := options(t, src, dst, "")
		o.Sync, o.DryRun = new(SyncOptions), dry
		sum, err := Copy(t.Context(), o)
		if err != nil || sum.Errors > 0 {
			t.Fatalf("%+v, %v", sum, err)
		}
		return sum
	}
	for _, linked := range []uint64{1, 0} {
		would, did := run(true), run(false)
		if would.Files != linked || did.Files+did.Hardlinks != linked || would.Unchanged != did.Unchanged {
			t.Errorf("it would do\n%+v, and has done\n%+v", would, did)
		}
	}
}

// TestCopyDryRunOne: so it is for a single file.
func TestCopyDryRunOne(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	file := src.file("f", 0o644, []byte("four"))
	dst.dir("taken")
	was := dst.list(dst.root)
	for _, x := range []struct {
		name          string
		files, failed uint64
	}{{"new", 1, 0}, {"taken", 0, 1}} {
		o, v := options(t, src, dst, x.name)
		o.Source.Handle, o.DryRun = file, true
		sum, err := Copy(t.Context(), o)
		if err != nil || sum.Files != x.files || sum.Bytes != 4*x.files || sum.Errors != x.failed || (v.list[0].Type == eventWould) != (x.failed == 0) {
			t.Errorf("%s: %+v, %v\n%v", x.name, sum, err, v)
		}
	}
	if d := diff(was, dst.list(dst.root)); d != "" {
		t.Error(d)
	}
}
