package job

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestCopyEverything copies one object of each type. The bubble reports goroutines that are left.
func TestCopyEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		everything(src)
		o, v := options(t, src, dst, "copy")
		o.Verify = true
		want := src.list(src.root)
		for range 2 { // the second time over the first
			s, err := Copy(t.Context(), o)
			if err != nil || s.ExitCode(err) != ExitDone {
				t.Fatalf("%v, %+v\n%s", err, s, v)
			}
			if d := diff(want, dst.list(dst.at("copy"))); d != "" {
				t.Error(d)
			}
			if s.Files != 311 || s.Hardlinks != 2 || s.Symlinks != 2 || s.Nodes != 3 || s.Verified != s.Files || s.LinksSplit+s.OwnersLost > 0 {
				t.Errorf("%+v", s)
			}
		}
		if temps := dst.temps(); len(temps) > 0 {
			t.Errorf("left behind: %q", temps)
		}
		var a, b uint64
		for _, used := range []struct {
			tr   *tree
			path string
			n    *uint64
		}{{src, "dir/sparse", &a}, {dst, "copy/dir/sparse", &b}} {
			attr, err := used.tr.fs.GetAttr(t.Context(), used.tr.at(used.path), vfs.MaskUsed)
			if err != nil {
				t.Fatal(err)
			}
			*used.n = attr.Used
		}
		if b > a {
			t.Errorf("the sparse copy uses %d bytes, the source %d", b, a)
		}
	})
}

// TestCopySingle copies objects that are no directories.
func TestCopySingle(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	everything(src)
	for _, path := range []string{"big", "dir/outside", "empty", "dir/fifo"} {
		o, v := options(t, src, dst, "copy")
		o.Source.Handle = src.at(path)
		s, err := Copy(t.Context(), o)
		if err != nil || s.Errors > 0 {
			t.Fatalf("%s: %v, %+v\n%s", path, err, s, v)
		}
		want, _, _ := strings.Cut(src.list(src.root)[path], " linked")
		if got := dst.list(dst.root)["copy"]; got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestCopyMerge copies into a directory that holds things, some in the way.
func TestCopyMerge(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.file("dir/file", 0o644, []byte("new"))
	src.file("linked/file", 0o644, []byte("must not get out"))
	src.file("blocked/file", 0o644, nil)
	src.file("file", 0o644, []byte("new"))
	src.file("link", 0o644, []byte("new"))
	src.make("symlink", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "to"})
	src.settle()

	dst.file("dst/dir/file", 0o600, []byte("old"))
	dst.file("dst/dir/other", 0o600, []byte("stays"))
	dst.dir("outside")
	dst.file("victim", 0o600, []byte("victim"))
	dst.make("dst/linked", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "../outside"})
	dst.make("dst/link", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "../victim"})
	dst.file("dst/blocked", 0o600, nil)
	dst.dir("dst/file")
	dst.file("dst/symlink", 0o600, nil)

	o, v := options(t, src, dst, "")
	o.Dest.Handle = dst.at("dst")
	s, err := Copy(t.Context(), o)
	if err != nil || s.Errors != 3 || s.ExitCode(err) != ExitIncomplete {
		t.Errorf("%v, %+v\n%s", err, s, v)
	}
	for _, path := range []string{"linked", "blocked", "file"} {
		if !strings.Contains(v.String(), fmt.Sprintf("error  %q:", path)) {
			t.Errorf("%s is not reported:\n%s", path, v)
		}
	}
	want, got := src.list(src.root), dst.list(dst.root)
	for _, path := range []string{"", "dir", "dir/file", "link", "symlink"} {
		if at := strings.TrimSuffix("dst/"+path, "/"); got[at] != want[path] {
			t.Errorf("%s: %s, want %s", path, got[at], want[path])
		}
	}
	if !strings.HasSuffix(got["dst/dir/other"], fmt.Sprintf("%x", "stays")) || !strings.HasSuffix(got["victim"], fmt.Sprintf("%x", "victim")) {
		t.Error("what was not to be touched is another")
	}
	for path := range got {
		if strings.HasPrefix(path, "outside/") {
			t.Errorf("%s has got out", path)
		}
	}
}

// TestCopyEveryFault fails each operation, of either side, in turn. What could
// be copied is there, whole; what could not is reported.
func TestCopyEveryFault(t *testing.T) {
	for _, side := range []string{"source", "destination"} {
		for n := 1; ; n++ {
			var in, out hooks
			src, dst := mem(t, memfs.Options{Fault: in.fault}), mem(t, memfs.Options{Fault: out.fault})
			few(src)
			o, v := options(t, src, dst, "copy")
			k := &in
			if side == "destination" {
				k = &out
			}
			k.set(failAt(n))
			s, err := Copy(t.Context(), o)
			done := k.count() < n
			k.set(nil)
			what := fmt.Sprintf("%s, operation %d", side, n)
			if done {
				if s.ExitCode(err) != ExitDone {
					t.Errorf("%s: %v, %+v\n%s", what, err, s, v)
				}
				break
			}
			if s.ExitCode(err) == ExitDone {
				// It may have been a look-up whose result does not matter.
				if d := diff(src.list(src.root), dst.list(dst.at("copy"))); d != "" {
					t.Errorf("%s: the fault went unnoticed: %+v\n%s", what, s, d)
				}
			}
			if err == nil && uint64(len(v.list)) != s.Errors {
				t.Errorf("%s: %d errors, and reported\n%s", what, s.Errors, v)
			}
			whole(t, what, src, dst, "copy")
		}
	}
}

// TestCopyCancel cancels at random operations.
func TestCopyCancel(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 60 {
		var out hooks
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{Fault: out.fault})
		few(src)
		o, v := options(t, src, dst, "copy")
		ctx, cancel := context.WithCancel(t.Context())
		at := 1 + r.IntN(70)
		out.set(func(n int, _ string, _ vfs.Handle) error {
			if n == at {
				cancel()
			}
			return nil
		})
		s, err := Copy(ctx, o)
		cancel()
		if !errors.Is(err, context.Canceled) && (err != nil || out.count() >= at) {
			t.Errorf("cancelled in operation %d: %v, %+v", at, err, s)
		}
		if s.Errors != 0 {
			t.Errorf("cancelled in operation %d: reported\n%s", at, v)
		}
		whole(t, fmt.Sprint("operation ", at), src, dst, "copy")
	}
}

// TestCopyUnprivileged: an ordinary user keeps all but owners and set-id bits.
func TestCopyUnprivileged(t *testing.T) {
	src := mem(t, memfs.Options{})
	all := mem(t, memfs.Options{Mode: 0o777})
	dst := newTree(t, all.fs.As(&vfs.Caller{UID: 1000, GID: 1000}))
	src.set(src.file("setuid", 0o4755, pattern(10, 1)), vfs.SetAttr{Valid: vfs.MaskUID | vfs.MaskMode, UID: 5, Mode: 0o4755})
	src.file("d/plain", 0o644, nil)
	src.make("device", vfs.CreateHow{Type: vfs.TypeChar, Rdev: 1})
	src.settle()
	o, v := options(t, src, dst, "copy")
	s, err := Copy(t.Context(), o)
	if err != nil || s.OwnersLost != 4 || s.SetIDsLost != 1 || s.Errors != 1 || !strings.Contains(v.String(), `"device"`) {
		t.Errorf("%v, %+v\n%s", err, s, v)
	}
	if got := dst.list(dst.at("copy"))["setuid"]; !strings.HasPrefix(got, "file 755 1000:1000 ") {
		t.Errorf("setuid: %s", got)
	}
}

// TestCopyUnreachable: one end cannot be looked at.
func TestCopyUnreachable(t *testing.T) {
	for _, side := range []string{"source", "destination"} {
		var in, out hooks
		src, dst := mem(t, memfs.Options{Fault: in.fault}), mem(t, memfs.Options{Fault: out.fault})
		o, _ := options(t, src, dst, "copy")
		k := &in
		if side == "destination" {
			k = &out
		}
		k.set(diesAt(1))
		s, err := Copy(t.Context(), o)
		if !errors.Is(err, ErrUnreachable) || !errors.Is(err, errDead) || s.ExitCode(err) != ExitUnreachable || !strings.Contains(err.Error(), side) {
			t.Errorf("%s: %v", side, err)
		}
	}
}

// TestCopyRefused: jobs that make no sense.
func TestCopyRefused(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.file("f", 0o644, nil)
	dst.file("f", 0o644, nil)
	for _, tt := range []struct {
		what string
		set  func(o *CopyOptions)
	}{
		{"a name with a slash", func(o *CopyOptions) { o.Name = "../up" }},
		{"a file without a name", func(o *CopyOptions) { o.Source.Handle, o.Name = src.at("f"), "" }},
		{"a file for a directory", func(o *CopyOptions) { o.Dest.Handle = dst.at("f") }},
	} {
		o, _ := options(t, src, dst, "copy")
		tt.set(&o)
		if s, err := Copy(t.Context(), o); s.ExitCode(err) != ExitRefused {
			t.Errorf("%s: %v", tt.what, err)
		}
	}
}

// TestCopyIntoItself: onto and into itself, seen through one file system and
// through two.
func TestCopyIntoItself(t *testing.T) {
	f := memfs.New(memfs.Options{ID: 1})
	same, view := newTree(t, f), newTree(t, f.As(&vfs.Caller{}))
	same.file("a/b/c/file", 0o644, nil)
	same.file("d/file", 0o644, nil)
	for _, tt := range []struct {
		src, dst, name string
		refused        bool
	}{
		{"a", "a", "", true},
		{"a", "a", "copy", true},
		{"a", "a/b/c", "copy", true},
		{"", "a/b/c", "", true},
		{"a", "", "a", true},
		{"d/file", "d", "file", true},
		{"a/b", "a", "copy", false},
		{"a", "d", "copy", false},
		{"d/file", "d", "other", false},
	} {
		for _, dst := range []*tree{same, view} {
			o, v := options(t, same, dst, tt.name)
			o.Source.Handle, o.Dest.Handle = same.at(tt.src), dst.at(tt.dst)
			if dir, name := path.Split(tt.src); name != "" {
				o.SourceDir, o.SourceName = same.at(dir), name
			}
			s, err := Copy(t.Context(), o)
			if errors.Is(err, ErrIntoItself) != tt.refused || !tt.refused && s.ExitCode(err) != ExitDone {
				t.Errorf("%q to %q in %q: %v, %+v\n%s", tt.src, tt.name, tt.dst, err, s, v)
			}
			if temps := same.temps(); len(temps) > 0 {
				t.Errorf("left behind: %q", temps)
			}
		}
	}
	// Another file system with the same handles and ids is not itself.
	o, v := options(t, same, newTree(t, memfs.New(memfs.Options{ID: 1})), "")
	if s, err := Copy(t.Context(), o); s.ExitCode(err) != ExitDone {
		t.Errorf("a twin: %v, %+v\n%s", err, s, v)
	}
}

// TestCopyKeepDest: a directory that was there keeps its mode, owner and times when it
// receives the contents of another.
func TestCopyKeepDest(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.file("d/file", 0o644, []byte("x"))
	src.settle()
	src.set(src.root, vfs.SetAttr{Valid: vfs.MaskMode | vfs.MaskUID, Mode: 0o777, UID: 42})
	dst.set(dst.root, mode(0o2750))
	before := dst.list(dst.root)
	o, v := options(t, src, dst, "")
	o.KeepDest = true
	if s, err := Copy(t.Context(), o); s.ExitCode(err) != ExitDone || s.Dirs != 2 {
		t.Errorf("%v, %+v\n%s", err, s, v)
	}
	mode := func(s string) string { mode, _, _ := strings.Cut(s, ":"); return mode }
	if was, is := mode(before[""]), mode(dst.list(dst.root)[""]); was != is {
		t.Errorf("%s was %s", is, was)
	}
	if d := diff(src.list(src.at("d")), dst.list(dst.at("d"))); d != "" {
		t.Error(d)
	}
}

// unlike is a file system with other handles and another file system id than the one it
// wraps, as if the same tree were reached in another way.
type unlike struct{ vfs.FS }

func other(h vfs.Handle) vfs.Handle {
	b := append([]byte{'x'}, h.Bytes()...)
	h, err := vfs.MakeHandle(b)
	if err != nil {
		panic(err)
	}
	return h
}

func inner(h vfs.Handle) vfs.Handle {
	if h.Len() != 17 {
		return h
	}
	h, err := vfs.MakeHandle(h.Bytes()[1:])
	if err != nil {
		panic(err)
	}
	return h
}

func (f unlike) GetAttr(ctx context.Context, h vfs.Handle, m vfs.Mask) (vfs.Attr, error) {
	a, err := f.FS.GetAttr(ctx, inner(h), m)
	a.FSID = [2]uint64{9, 9}
	return a, err
}

func (f unlike) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	h, a, d, err := f.FS.Lookup(ctx, inner(dir), name)
	a.FSID = [2]uint64{9, 9}
	return other(h), a, d, err
}

func (f unlike) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	h, a, w, err := f.FS.Create(ctx, inner(dir), name, how)
	a.FSID = [2]uint64{9, 9}
	return other(h), a, w, err
}

func (f unlike) Info(ctx context.Context, h vfs.Handle, m vfs.InfoMask) (vfs.Info, error) {
	return f.FS.Info(ctx, inner(h), m)
}

func (f unlike) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	return f.FS.Remove(ctx, inner(dir), name, isDir)
}

// TestCopyIntoItselfUnseen: only the probe shows that two file systems are one.
func TestCopyIntoItselfUnseen(t *testing.T) {
	f := memfs.New(memfs.Options{})
	src := newTree(t, f)
	src.dir("a/b/c")
	o, _ := options(t, src, newTree(t, unlike{f}), "copy")
	o.Source.Handle, o.Dest.Handle = src.at("a"), other(src.at("a/b/c"))
	if _, err := Copy(t.Context(), o); !errors.Is(err, ErrIntoItself) {
		t.Errorf("error %v", err)
	}
	if list := src.list(src.at("a/b/c")); len(list) != 1 {
		t.Errorf("the refusal has left %q", list)
	}
}

// TestCopyLinks: hard links whose first copy failed.
func TestCopyLinks(t *testing.T) {
	t.Run("no links there", func(t *testing.T) {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
			if op == "link" {
				return vfs.ErrNotSupp
			}
			return nil
		}})
		few(src)
		o, v := options(t, src, dst, "copy")
		s, err := Copy(t.Context(), o)
		if err != nil || s.Errors > 0 || s.LinksSplit != 1 || s.Hardlinks != 0 || len(v.list) != 1 || v.list[0].Type != "note" {
			t.Errorf("%v, %+v\n%s", err, s, v)
		}
		whole(t, "no links", src, dst, "copy")
	})
	t.Run("the first fails", func(t *testing.T) {
		var out hooks
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{Fault: out.fault})
		h := src.file("a", 0o644, pattern(10, 1))
		src.link(h, "b")
		src.link(h, "c")
		o, v := options(t, src, dst, "copy")
		failed := false
		out.set(func(_ int, op string, _ vfs.Handle) error {
			if op == "write" && !failed {
				failed = true
				return vfs.ErrNoSpace
			}
			return nil
		})
		s, err := Copy(t.Context(), o)
		if err != nil || s.Errors != 1 || s.Files != 1 || s.Hardlinks != 1 {
			t.Errorf("%v, %+v\n%s", err, s, v)
		}
	})
}

func TestLinkTable(t *testing.T) {
	var l linkTable
	file := func(i uint64) linkID { return linkID{objectID: objectID{fileID: i}, nlink: 2} }
	for i := range uint64(maxLinked) {
		if _, first, _ := l.claim(file(i)); !first {
			t.Fatalf("file %d is known", i)
		}
	}
	if f, _, _ := l.claim(file(maxLinked)); f != nil {
		t.Error("there is no bound")
	}
	if f, first, _ := l.claim(file(7)); f == nil || first {
		t.Error("a file is forgotten")
	}
	if f, first, _ := l.claim(file(maxLinked)); f == nil || !first {
		t.Error("a file of which all names are met is not forgotten")
	}
}

// TestCopySyncs: on a destination with a Syncer, nothing is unstable when the job has ended.
func TestCopySyncs(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	everything(src)
	f := newSyncing(dst.fs)
	o, v := options(t, src, dst, "copy")
	o.Dest.FS = f
	if s, err := Copy(t.Context(), o); s.ExitCode(err) != ExitDone {
		t.Fatalf("%v, %+v\n%s", err, s, v)
	}
	if left := f.unsynced(); len(left) > 0 {
		t.Errorf("a power cut would lose %d changes: %.300q", len(left), left)
	}
	if d := diff(src.list(src.root), dst.list(dst.at("copy"))); d != "" {
		t.Error(d)
	}
	o.Source.Handle, o.Name = src.at("big"), "single"
	if s, err := Copy(t.Context(), o); s.ExitCode(err) != ExitDone || len(f.unsynced()) > 0 {
		t.Errorf("a single file: %v, %q", err, f.unsynced())
	}
}

// TestCopySyncFails: a file that cannot be made stable is not recorded as done.
func TestCopySyncFails(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	few(src)
	f := newSyncing(dst.fs)
	dir := recordDir(t)
	o, v := options(t, src, dst, "")
	o.Dest.FS, o.Record = f, dir
	// Files can be synced, directories not.
	o.Dest.FS = &dirsFail{f, dst}
	s, err := Copy(t.Context(), o)
	if err != nil || s.Errors != 3 || s.ExitCode(err) != ExitIncomplete {
		t.Errorf("%v, %+v\n%s", err, s, v)
	}
	info, err := dir.Stat(recordName)
	if err != nil || info.Size() != headerSize {
		t.Errorf("the record has %d bytes, %v", info.Size(), err)
	}
}

// TestCopyClosed: a directory that its owner may not read is synced before it gets its mode,
// and its files are recorded.
func TestCopyClosed(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	few(src)
	src.set(src.at("d"), mode(0o300))
	f := &lockedOut{newSyncing(dst.fs)}
	dir := recordDir(t)
	for i := range 2 {
		o, v := options(t, src, dst, "")
		o.Dest.FS, o.Record = f, dir
		s, err := Copy(t.Context(), o)
		if s.ExitCode(err) != ExitDone || s.Skipped != uint64(i)*7 {
			t.Errorf("%v, %+v\n%s", err, s, v)
		}
	}
	for _, what := range f.unsynced() {
		if what != "setattr" && what != "made" { // of the closed directory, and of a probe that is gone
			t.Errorf("a power cut would lose %q", what)
		}
	}
	if d := diff(src.list(src.root), dst.list(dst.root)); d != "" {
		t.Error(d)
	}
}

// lockedOut can sync only what its owner may read.
type lockedOut struct{ *syncing }

func (f *lockedOut) Sync(ctx context.Context, h vfs.Handle) error {
	a, err := f.GetAttr(ctx, h, vfs.MaskMode)
	if err != nil {
		return err
	}
	if a.Mode&0o400 == 0 {
		return vfs.ErrAccess
	}
	return f.syncing.Sync(ctx, h)
}

// dirsFail cannot sync directories.
type dirsFail struct {
	*syncing
	tr *tree
}

func (f *dirsFail) Sync(ctx context.Context, h vfs.Handle) error {
	if a, err := f.GetAttr(ctx, h, vfs.MaskType); err != nil || a.Type == vfs.TypeDir {
		return errors.Join(vfs.ErrIO, err)
	}
	return f.syncing.Sync(ctx, h)
}

func recordDir(t testing.TB) *os.Root {
	t.Helper()
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestCopyOverSpecial: a file is not copied to the name of a pipe, a socket or a device, which
// another program may be at. In a tree it replaces them, and so does anything else that is named.
func TestCopyOverSpecial(t *testing.T) {
	for _, what := range []vfs.CreateHow{
		{Type: vfs.TypeFIFO}, {Type: vfs.TypeSocket}, {Type: vfs.TypeChar, Rdev: 1<<32 | 3}, {Type: vfs.TypeBlock, Rdev: 8 << 32},
	} {
		what.Set = mode(0o600)
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		src.file("f", 0o644, []byte("text"))
		src.make("link", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "f"})
		src.settle()
		dst.make("f", what)
		before := dst.list(dst.root)
		o, v := options(t, src, dst, "f")
		for _, known := range []*There{nil, dst.there("f")} {
			o.Source.Handle, o.There = src.at("f"), known
			s, err := Copy(t.Context(), o)
			if d := diff(before, dst.list(dst.root)); !errors.Is(err, ErrSpecial) || s.ExitCode(err) != ExitRefused || d != "" {
				t.Errorf("%v: %v\n%s%s", what.Type, err, v, d)
			}
		}
		o.Source.Handle, o.There, o.Name = src.root, nil, ""
		if s, err := Copy(t.Context(), o); s.ExitCode(err) != ExitDone || diff(src.list(src.root), dst.list(dst.root)) != "" {
			t.Errorf("%v, in a tree: %v, %+v\n%s", what.Type, err, s, v)
		}
	}
}

// TestResumedBytes: what a resumed copy skips counts in bytes as it does in files.
func TestResumedBytes(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	for i := range 4 {
		src.file(fmt.Sprint("f", i), 0o644, pattern(1000, byte(i)))
	}
	o, v := options(t, src, dst, "copy")
	o.Record, o.ID = recordDir(t), "this job"
	for n := range 2 {
		before := o.Progress.Snapshot()
		if s, err := Copy(t.Context(), o); s.ExitCode(err) != ExitDone {
			t.Fatalf("%v, %+v\n%s", err, s, v)
		}
		after := o.Progress.Snapshot()
		for c, want := range map[progress.Counter]uint64{
			progress.Bytes: 4000 * uint64(1-n), progress.FoundBytes: 4000 * uint64(1-n), progress.SkippedBytes: 4000 * uint64(n), progress.Skipped: 5 * uint64(n), // the directory, too
		} {
			if got := after.Counts[c] - before.Counts[c]; got != want {
				t.Errorf("run %d: %v is %d, want %d", n, c, got, want)
			}
		}
	}
}

// TestDestKeepsMtime: a directory that was there has its mtime if the copy changes no name in it,
// where that may be set, and if it is not, that is no failure.
func TestDestKeepsMtime(t *testing.T) {
	for _, refused := range []error{nil, vfs.ErrPerm} {
		src := mem(t, memfs.Options{})
		src.dir("d")
		var out hooks
		dst := mem(t, memfs.Options{Fault: out.fault})
		dst.dir("d")
		dst.settle()
		at := func() time.Time {
			a, err := dst.fs.GetAttr(t.Context(), dst.root, vfs.MaskMtime)
			if err != nil {
				t.Error(err)
			}
			return a.Mtime
		}
		before := at()
		o, v := options(t, src, dst, "")
		o.KeepDest = true
		out.set(func(_ int, op string, h vfs.Handle) error {
			if op == "setattr" && h == dst.root {
				return refused
			}
			return nil
		})
		s, err := Copy(t.Context(), o)
		out.set(nil)
		if s.ExitCode(err) != ExitDone || at().Equal(before) != (refused == nil) {
			t.Errorf("%v, %+v, %v was %v\n%s", err, s, at(), before, v)
		}
	}
}
