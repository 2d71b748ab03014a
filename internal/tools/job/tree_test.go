package job

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/vfs"
)

// epoch is the time of everything in a test's source.
var epoch = time.Unix(1_700_000_000, 123_456_789)

// tree is a file system and its root, to build and to look at.
type tree struct {
	t    testing.TB
	fs   vfs.FS
	root vfs.Handle
}

func newTree(t testing.TB, f vfs.FS) *tree {
	t.Helper()
	h, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &tree{t, f, h}
}

// mem is a tree in memory. It is checked for files left open.
func mem(t testing.TB, o memfs.Options) *tree {
	t.Helper()
	f := memfs.New(o)
	t.Cleanup(func() {
		if n := f.OpenFiles(); n != 0 {
			t.Errorf("%d files are still open", n)
		}
	})
	return newTree(t, f)
}

// make makes an object, with the directories above it, and returns its handle.
func (tr *tree) make(path string, how vfs.CreateHow) vfs.Handle {
	tr.t.Helper()
	dir, name := tr.root, path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		dir, name = tr.dir(path[:i]), path[i+1:]
	}
	h, _, _, err := tr.fs.Create(context.Background(), dir, name, &how)
	if err != nil {
		tr.t.Fatalf("make %q: %v", path, err)
	}
	return h
}

// dir returns the directory at path, and makes its missing parts.
func (tr *tree) dir(path string) vfs.Handle {
	tr.t.Helper()
	r, err := vfs.Resolve(context.Background(), tr.fs, tr.root, path, false)
	if err == nil {
		return r.Handle
	}
	return tr.make(path, vfs.CreateHow{Type: vfs.TypeDir, Set: mode(0o755)})
}

func mode(m uint32) vfs.SetAttr { return vfs.SetAttr{Valid: vfs.MaskMode, Mode: m} }

// file makes a file with these contents.
func (tr *tree) file(path string, m uint32, contents []byte) vfs.Handle {
	tr.t.Helper()
	h := tr.make(path, vfs.CreateHow{Type: vfs.TypeReg, Set: mode(m)})
	tr.write(h, 0, contents)
	return h
}

func (tr *tree) write(h vfs.Handle, off uint64, b []byte) {
	tr.t.Helper()
	ctx := context.Background()
	f, _, err := tr.fs.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite})
	if err != nil {
		tr.t.Fatal(err)
	}
	var w vfs.Written
	if _, err := vfs.WriteFull(ctx, f, b, off, vfs.FileSync, &w); err != nil {
		tr.t.Fatal(err)
	}
	if err := f.Close(ctx); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr *tree) set(h vfs.Handle, set vfs.SetAttr) {
	tr.t.Helper()
	if _, err := tr.fs.SetAttr(context.Background(), h, &set, nil); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr *tree) link(h vfs.Handle, path string) {
	tr.t.Helper()
	dir, name := tr.root, path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		dir, name = tr.dir(path[:i]), path[i+1:]
	}
	if _, _, err := tr.fs.Link(context.Background(), h, dir, name); err != nil {
		tr.t.Fatal(err)
	}
}

// at finds the object at path, without following links.
func (tr *tree) at(path string) vfs.Handle {
	tr.t.Helper()
	r, err := vfs.Resolve(context.Background(), tr.fs, tr.root, path, false)
	if err != nil {
		tr.t.Fatal(err)
	}
	return r.Handle
}

// settle gives every object in the tree times of its own, directories included.
func (tr *tree) settle() {
	tr.t.Helper()
	n := 0
	tr.each("", tr.root, func(_ string, h vfs.Handle, _ vfs.Attr) {
		n++
		tr.set(h, vfs.SetAttr{
			Valid: vfs.MaskMtime | vfs.MaskAtime,
			Mtime: epoch.Add(time.Duration(n) * time.Minute), Atime: epoch.Add(-time.Duration(n) * time.Minute),
		})
	})
}

// each calls f for everything below h, directories after their entries, and h last.
func (tr *tree) each(path string, h vfs.Handle, f func(path string, h vfs.Handle, a vfs.Attr)) {
	tr.t.Helper()
	ctx := context.Background()
	a, err := tr.fs.GetAttr(ctx, h, vfs.MaskV3)
	if err != nil {
		tr.t.Fatal(err)
	}
	if a.Type == vfs.TypeDir {
		var names []string
		for e, err := range tr.fs.ReadDir(ctx, h, vfs.Pos{}, 0, 0) {
			if err != nil {
				tr.t.Fatal(err)
			}
			names = append(names, string(e.Name))
		}
		for _, name := range names {
			c, _, _, err := tr.fs.Lookup(ctx, h, name)
			if err != nil {
				tr.t.Fatal(err)
			}
			tr.each(strings.TrimPrefix(path+"/"+name, "/"), c, f)
		}
	}
	f(path, h, a)
}

// list describes everything below h, one string for each path.
func (tr *tree) list(h vfs.Handle) map[string]string {
	tr.t.Helper()
	ctx := context.Background()
	out := map[string]string{}
	groups := map[uint64][]string{}
	tr.each("", h, func(path string, h vfs.Handle, a vfs.Attr) {
		s := fmt.Sprintf("%v %o %d:%d %v", a.Type, a.Mode, a.UID, a.GID, a.Mtime.UnixNano())
		switch a.Type {
		case vfs.TypeReg:
			s += fmt.Sprintf(" %d bytes %x", a.Size, tr.read(h, a.Size))
			if a.Nlink > 1 {
				groups[a.FileID] = append(groups[a.FileID], path)
			}
		case vfs.TypeSymlink:
			target, _, err := tr.fs.Readlink(ctx, h)
			if err != nil {
				tr.t.Fatal(err)
			}
			s += " to " + target
		case vfs.TypeBlock, vfs.TypeChar:
			s += fmt.Sprint(" ", a.Rdev)
		}
		out[path] = s
	})
	for _, paths := range groups {
		for _, path := range paths {
			out[path] += " linked to " + slices.Min(paths)
		}
	}
	return out
}

func (tr *tree) read(h vfs.Handle, size uint64) []byte {
	tr.t.Helper()
	ctx := context.Background()
	f, _, err := tr.fs.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		tr.t.Fatal(err)
	}
	b := make([]byte, size)
	if _, _, err := vfs.ReadFull(ctx, f, b, 0); err != nil {
		tr.t.Fatal(err)
	}
	if err := f.Close(ctx); err != nil {
		tr.t.Fatal(err)
	}
	if len(b) > 256 {
		return fmt.Appendf(nil, "%x", checksum(b))
	}
	return b
}

func checksum(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// diff is the difference of two lists.
func diff(want, got map[string]string) string {
	var b bytes.Buffer
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if want[path] != got[path] {
			fmt.Fprintf(&b, "%q:\n  want %.300s\n  got  %.300s\n", path, want[path], got[path])
		}
	}
	return b.String()
}

// pattern is n bytes without a repetition.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	x := uint32(seed) + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// everything puts one of each kind of object into tr.
func everything(tr *tree) {
	tr.file("empty", 0o644, nil)
	tr.file("one byte", 0o600, []byte("x"))
	tr.file("read only", 0o400, pattern(1000, 1))
	big := tr.file("big", 0o640, pattern(3<<20+17, 2))
	tr.set(tr.file("dir/setuid", 0o755, pattern(5000, 3)), vfs.SetAttr{
		Valid: vfs.MaskUID | vfs.MaskGID | vfs.MaskMode, UID: 1000, GID: 1000, Mode: 0o6755,
	})
	tr.link(big, "dir/sub/hard link")
	tr.link(big, "dir/another")
	sparse := tr.file("dir/sparse", 0o644, nil)
	tr.write(sparse, 5<<20, pattern(9000, 4))
	tr.set(sparse, vfs.SetAttr{Valid: vfs.MaskSize, Size: 9<<20 + 1})
	tr.make("dir/outside", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "../../../etc/passwd"})
	tr.make("dir/dangling", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "\xff\x00nothing"[:1]})
	tr.make("dir/fifo", vfs.CreateHow{Type: vfs.TypeFIFO, Set: mode(0o622)})
	tr.make("dir/socket", vfs.CreateHow{Type: vfs.TypeSocket, Set: mode(0o700)})
	tr.make("dir/device", vfs.CreateHow{Type: vfs.TypeChar, Rdev: 1<<32 | 3, Set: mode(0o666)})
	tr.make("dir/locked", vfs.CreateHow{Type: vfs.TypeDir, Set: mode(0o2755)})
	tr.file("dir/locked/file", 0o644, pattern(100, 5))
	tr.set(tr.at("dir/locked"), mode(0o2500))
	tr.file("names/\xff\xfe", 0o644, []byte("not UTF-8"))
	tr.file("names/\x1b[31mred\n", 0o644, []byte("control characters"))
	tr.file("names/"+strings.Repeat("n", vfs.MaxName), 0o644, []byte("long"))
	tr.dir("empty dir")
	for i := range 300 {
		tr.file(fmt.Sprintf("many/%d/%03d", i%7, i), 0o644, pattern(i*37, byte(i)))
	}
	deep := "deep"
	for i := range 60 {
		deep += fmt.Sprintf("/%d", i)
	}
	tr.file(deep+"/file", 0o644, []byte("deep"))
	tr.settle()
}

// events collects what a job reports.
type events struct {
	t    testing.TB
	list []progress.Event
}

func (*events) Interval() time.Duration               { return time.Hour }
func (*events) Progress(*progress.Snapshot) error     { return nil }
func (*events) Summary(*progress.Snapshot, any) error { return nil }
func (v *events) Event(_ time.Time, e *progress.Event) error {
	v.list = append(v.list, *e)
	return nil
}

func (v *events) String() string {
	var b strings.Builder
	for _, e := range v.list {
		fmt.Fprintf(&b, "%s %s %q: %s\n", e.Type, e.Kind, e.Path, e.Message)
	}
	return b.String()
}

// options are those of a copy of src into dst, under name. The pool is checked when the test
// ends, and that a walk which came to its end has counted no item twice.
func options(t testing.TB, src, dst *tree, name string) (CopyOptions, *events) {
	t.Helper()
	pool := &bufpool.Pool{}
	v := &events{t: t}
	tracker := progress.New(v, time.Now)
	t.Cleanup(func() {
		if n := pool.Outstanding(); n != 0 {
			t.Errorf("%d buffers are still out", n)
		}
		if s := tracker.Snapshot(); s.Closed && s.Items() > s.Counts[progress.FoundItems] {
			t.Errorf("of %d items %d are done: %v", s.Counts[progress.FoundItems], s.Items(), s.Counts)
		}
		if err := tracker.Finish(nil); err != nil {
			t.Error(err)
		}
	})
	return CopyOptions{
		Source: Place{src.fs, src.root}, Dest: Place{dst.fs, dst.root}, Name: name,
		Pool: pool, Random: rand.Reader, Now: time.Now, Progress: tracker, Owner: true,
	}, v
}
