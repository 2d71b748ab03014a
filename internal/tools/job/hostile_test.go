package job

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// hostile is a source that changes its root's listing, and the bytes that are read.
type hostile struct {
	vfs.FS
	root    vfs.Handle
	entries func(yield func(*vfs.Entry, error) bool, honest iter.Seq2[*vfs.Entry, error])
	target  string
}

func (f *hostile) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, n uint32) iter.Seq2[*vfs.Entry, error] {
	honest := f.FS.ReadDir(ctx, dir, from, want, n)
	if dir != f.root || f.entries == nil {
		return honest
	}
	return func(yield func(*vfs.Entry, error) bool) { f.entries(yield, honest) }
}

func (f *hostile) Readlink(ctx context.Context, h vfs.Handle) (string, vfs.Attr, error) {
	target, a, err := f.FS.Readlink(ctx, h)
	if f.target != "" {
		target = f.target
	}
	return target, a, err
}

// renamed lists existing objects under further names.
func renamed(names ...string) func(func(*vfs.Entry, error) bool, iter.Seq2[*vfs.Entry, error]) {
	return func(yield func(*vfs.Entry, error) bool, honest iter.Seq2[*vfs.Entry, error]) {
		cookie := uint64(1 << 40)
		for e, err := range honest {
			if !yield(e, err) {
				return
			}
			for _, name := range names {
				own := *e
				own.Name = []byte(name)
				own.Next.Cookie = cookie
				cookie++
				if !yield(&own, nil) {
					return
				}
			}
		}
	}
}

// TestHostileNames: names that lead elsewhere are reported, and nothing outside the copy is
// made or changed.
func TestHostileNames(t *testing.T) {
	bad := []string{"..", ".", "", "../outside", "/etc/passwd", "a/b", "nul\x00l", strings.Repeat("x", 256)}
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.file("file", 0o644, []byte("evil"))
	src.file("dir/file", 0o644, []byte("evil"))
	dst.file("outside/file", 0o600, []byte("mine"))
	before := dst.list(dst.at("outside"))
	o, v := options(t, src, dst, "copy")
	o.Source.FS = &hostile{FS: src.fs, root: src.root, entries: renamed(bad...)}
	s, err := Copy(t.Context(), o)
	if err != nil || s.Errors != uint64(2*len(bad)) || s.ExitCode(err) != ExitIncomplete {
		t.Errorf("%v, %+v\n%s", err, s, v)
	}
	got := dst.list(dst.root)
	for _, want := range []string{"", "outside", "outside/file", "copy", "copy/file", "copy/dir", "copy/dir/file"} {
		if got[want] == "" {
			t.Errorf("%q is missing", want)
		}
		delete(got, want)
	}
	if len(got) > 0 {
		t.Errorf("made as well: %q", got)
	}
	if d := diff(before, dst.list(dst.at("outside"))); d != "" {
		t.Error(d)
	}
}

// TestHostileTwice lists every name eight times. Each name is one whole object in the end.
func TestHostileTwice(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	everything(src)
	want := src.list(src.root)
	o, v := options(t, src, dst, "copy")
	o.Record, o.ID = recordDir(t), "twice"
	o.Source.FS = &hostile{FS: src.fs, root: src.root,
		entries: func(yield func(*vfs.Entry, error) bool, honest iter.Seq2[*vfs.Entry, error]) {
			cookie := uint64(1 << 40)
			for e, err := range honest {
				for range 8 {
					own := *e
					own.Next.Cookie = cookie
					cookie++
					if !yield(&own, err) {
						return
					}
				}
			}
		}}
	s, err := Copy(t.Context(), o)
	if err != nil {
		t.Fatalf("%v, %+v\n%s", err, s, v)
	}
	got := dst.list(dst.at("copy"))
	for path := range want {
		if typ, _, _ := strings.Cut(want[path], " "); !strings.HasPrefix(got[path], typ) {
			t.Errorf("%q is %.50s", path, got[path])
		}
	}
	if temps := dst.temps(); len(temps) > 0 {
		t.Errorf("left behind: %q", temps)
	}
}

// TestHostileLink: a link whose target is too long, or is none.
func TestHostileLink(t *testing.T) {
	for _, target := range []string{strings.Repeat("x", vfs.MaxPath+1), strings.Repeat("../", 300) + "etc/passwd"} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		src.make("l", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "x"})
		o, v := options(t, src, dst, "copy")
		o.Source.FS = &hostile{FS: src.fs, target: target}
		s, err := Copy(t.Context(), o)
		if err != nil || (s.Errors == 1) != (len(target) > vfs.MaxPath) {
			t.Errorf("%d bytes: %v, %+v\n%s", len(target), err, s, v)
		}
	}
}

// TestSwappedDirectory puts a symbolic link in the place of a directory of the
// destination while it is being filled.
func TestSwappedDirectory(t *testing.T) {
	var out hooks
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{Fault: out.fault})
	for i := range 50 {
		src.file(fmt.Sprintf("dir/%02d", i), 0o644, pattern(100, byte(i)))
	}
	dst.dir("outside")
	o, v := options(t, src, dst, "copy")
	o.Parallel = 1
	out.set(func(n int, op string, _ vfs.Handle) error {
		if n == 60 {
			out.set(nil)
			copied := dst.at("copy")
			if _, _, err := dst.fs.Rename(context.Background(), copied, "dir", dst.root, "moved"); err != nil {
				return err
			}
			dst.make("copy/dir", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "../outside"})
		}
		return nil
	})
	s, err := Copy(t.Context(), o)
	if err != nil || s.Errors > 0 {
		t.Errorf("%v, %+v\n%s", err, s, v)
	}
	var moved, outside int
	for path := range dst.list(dst.root) {
		if strings.HasPrefix(path, "moved/") {
			moved++
		}
		if strings.HasPrefix(path, "outside/") {
			outside++
		}
	}
	if moved != 50 || outside != 0 {
		t.Errorf("%d files in the directory that was begun, %d outside", moved, outside)
	}
}

// TestVanishing: an object that vanishes while it is copied is reported once.
func TestVanishing(t *testing.T) {
	var in hooks
	src, dst := mem(t, memfs.Options{Fault: in.fault}), mem(t, memfs.Options{})
	everything(src)
	o, v := options(t, src, dst, "copy")
	gone := []string{"one byte", "empty", "read only"}
	in.set(func(_ int, op string, _ vfs.Handle) error {
		if op == "readdir" || op == "open" {
			in.set(nil)
			for _, name := range gone {
				if _, err := src.fs.Remove(context.Background(), src.root, name, false); err != nil {
					return err
				}
			}
		}
		return nil
	})
	s, err := Copy(t.Context(), o)
	if err != nil || s.Errors > uint64(len(gone)) {
		t.Errorf("%v, %+v\n%s", err, s, v)
	}
	for _, e := range v.list {
		if !slices.Contains(gone, e.Path) {
			t.Errorf("%q: %s", e.Path, e.Message)
		}
	}
	whole(t, "vanishing", src, dst, "copy")
}
