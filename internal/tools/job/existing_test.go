package job

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// attr is what the tree has of path.
func (tr *tree) attr(path string) vfs.Attr {
	tr.t.Helper()
	a, err := tr.fs.GetAttr(context.Background(), tr.at(path), vfs.MaskV3)
	if err != nil {
		tr.t.Fatal(err)
	}
	return a
}

// TestExistingKept: what is there stays as it is, whatever it is like, directories too; only what is missing is made.
func TestExistingKept(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.file("dir/there", 0o644, []byte("new"))
	src.file("dir/missing", 0o640, []byte("missing"))
	src.file("dir/linked", 0o644, []byte("both names"))
	src.link(src.at("dir/linked"), "dir/name")
	src.file("dir/a directory there", 0o644, nil)
	src.make("dir/link", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "new"})
	src.file("made/below", 0o600, []byte("x"))
	src.file("file there/below", 0o600, []byte("x"))
	src.settle()
	src.set(src.at("dir"), mode(0o751))
	dst.file("dir/there", 0o600, []byte("of the user"))
	dst.file("dir/linked", 0o600, []byte("old"))
	dst.dir("dir/a directory there")
	dst.make("dir/link", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "old"})
	dst.file("file there", 0o600, []byte("a file"))
	dst.set(dst.at("dir"), mode(0o700))
	was := map[string]vfs.Attr{}
	for _, path := range []string{"dir/there", "dir/linked", "dir/a directory there", "dir/link", "file there"} {
		was[path] = dst.attr(path)
	}

	o, v := options(t, src, dst, "")
	o.Sync = &SyncOptions{Existing: Keep}
	o.DryRun = true
	sum, err := Copy(t.Context(), o)
	if err != nil || sum.Files != 3 || sum.Dirs != 1 || sum.Errors != 1 {
		t.Errorf("a rehearsal: %v, %+v\n%v", err, sum, v)
	}
	o, v = options(t, src, dst, "")
	o.Sync = &SyncOptions{Existing: Keep}
	sum, err = Copy(t.Context(), o)
	if err != nil || sum.Errors != 1 { // the file that is there is no directory
		t.Errorf("%v, %+v\n%v", err, sum, v)
	}
	for path, a := range was {
		if now := dst.attr(path); now.FileID != a.FileID || now.Mode != a.Mode || now.Size != a.Size || !now.Mtime.Equal(a.Mtime) {
			t.Errorf("%s was %+v, and is %+v", path, a, now)
		}
	}
	if got := dst.attr("dir").Mode; got != 0o700 {
		t.Errorf("the directory that was there has got mode %o", got)
	}
	// A name that the source has linked to one which stays is no name of that.
	for path, want := range map[string]string{"dir/name": "both names", "dir/missing": "missing", "made/below": "x"} {
		if got := dst.read(dst.at(path), uint64(len(want))); string(got) != want {
			t.Errorf("%s has %q", path, got)
		}
	}
	// "dir", its five entries that are there, and the root.
	if sum.Files != 3 || sum.Dirs != 1 || sum.Unchanged != 6 || sum.AttrsSet != 0 {
		t.Errorf("%+v", sum)
	}
}

// TestExistingKeptGoesOn: directories that an interrupted run has made are finished by the next one, which keeps
// what was there before.
func TestExistingKeptGoesOn(t *testing.T) {
	src := mem(t, memfs.Options{})
	src.file("made/a", 0o644, []byte("a"))
	src.file("made/b", 0o644, []byte("b"))
	src.settle()
	stop := errors.New("stopped")
	broken := false
	dst := mem(t, memfs.Options{Fault: func(ctx context.Context, op string, _ vfs.Handle) error {
		if op == "rename" || op == "link" {
			broken = true
		}
		return ctx.Err()
	}})
	dst.file("old/x", 0o600, nil)
	record, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer record.Close() //nolint:errcheck // nothing is written to it
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	o, _ := options(t, src, dst, "")
	o.Sync, o.Record, o.ID, o.Parallel = &SyncOptions{Existing: Keep}, record, "x", 1
	o.Rooted = func(vfs.Attr) error {
		dst.make("made", vfs.CreateHow{Type: vfs.TypeDir, Set: mode(0o700)}) // as a run that was killed
		cancel(stop)
		return nil
	}
	if _, err := Copy(ctx, o); err == nil || broken {
		t.Fatalf("%v", err)
	}
	o, v := options(t, src, dst, "")
	o.Sync, o.Record, o.ID = &SyncOptions{Existing: Keep}, record, "x"
	sum, err := Copy(t.Context(), o)
	if err != nil || sum.Errors+sum.DirsClosed > 0 {
		t.Fatalf("%v %+v\n%v", err, sum, v)
	}
	if got := dst.attr("made"); got.Mode&0o777 != 0o755 || !got.Mtime.Equal(src.attr("made").Mtime) {
		t.Errorf("the directory that was made is not finished: %o, %v", got.Mode, got.Mtime)
	}
}

// TestExistingReplaced: files are made anew though they look the same.
func TestExistingReplaced(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	everything(src)
	synced(t, src, dst, SyncOptions{})
	h := dst.at("many/1/001")
	a := dst.attr("many/1/001")
	dst.write(h, 0, []byte{'?'})
	dst.set(h, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: a.Mtime})
	if sum, _ := synced(t, src, dst, SyncOptions{}); sum.Files != 0 {
		t.Fatalf("%+v", sum)
	}
	sum, _ := synced(t, src, dst, SyncOptions{Existing: Replace})
	if sum.Files == 0 || sum.Symlinks+sum.Nodes > 0 {
		t.Errorf("%+v", sum)
	}
	alikeTrees(t, src, dst)
}

// TestExistingSingle: one object is judged likewise.
func TestExistingSingle(t *testing.T) {
	for _, c := range []struct {
		how         Existing
		there       string
		later       time.Duration
		want        string
		files, kept uint64
	}{
		{Update, "", 0, "new", 1, 0},
		{Update, "new", 0, "new", 0, 1},
		{Update, "old", time.Hour, "new", 1, 0},
		{Keep, "old", time.Hour, "old", 0, 1},
		{Keep, "", 0, "new", 1, 0},
		{Replace, "old", 0, "new", 1, 0},
	} {
		for _, dry := range []bool{true, false} {
			src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
			h := src.file("f", 0o644, []byte("new"))
			src.set(h, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: epoch})
			if c.there != "" {
				dst.set(dst.file("g", 0o644, []byte(c.there)), vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: epoch.Add(c.later)})
			}
			o, v := options(t, src, dst, "g")
			o.Source.Handle, o.SourceDir, o.SourceName = h, src.root, "f"
			o.Sync, o.DryRun = &SyncOptions{Existing: c.how}, dry
			sum, err := Copy(t.Context(), o)
			if err != nil || sum.Files != c.files || sum.Unchanged != c.kept || sum.Errors > 0 {
				t.Errorf("%+v, dry %v: %v, %+v\n%v", c, dry, err, sum, v)
			}
			if dry {
				continue
			}
			if got := dst.read(dst.at("g"), uint64(len(c.want))); !bytes.Equal(got, []byte(c.want)) {
				t.Errorf("%+v: %q", c, got)
			}
		}
	}
}
