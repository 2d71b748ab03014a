package job

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/vfs"
)

// move renames a path in the source.
func (tr *tree) move(from, to string) {
	dir := func(path string) (vfs.Handle, string) {
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return tr.root, path
		}
		return tr.at(path[:i]), path[i+1:]
	}
	fromDir, fromName := dir(from)
	toDir, toName := dir(to)
	if _, _, err := tr.fs.Rename(context.Background(), fromDir, fromName, toDir, toName); err != nil {
		tr.t.Error(err)
	}
}

// lateTree is a source in which something happens when the last directory, z, is listed, and the
// others have been left.
func lateTree(t *testing.T) *upset {
	src := newUpset(t)
	for _, name := range []string{"a/old", "a/sub/f", "a/sub/deep/f", "b/c/f", "z/f", "z/d/f", "z/d/e/f"} {
		src.file(name, 0o644, []byte("the text of "+name))
	}
	src.make("a/link", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "old"})
	src.settle()
	src.op, src.on = "readdir", src.at("z")
	return src
}

// TestMovedIntoListed: what is moved from a part of the source that is not listed yet into a
// directory that was is in the copy, and nothing is told.
func TestMovedIntoListed(t *testing.T) {
	for name, c := range map[string]struct {
		do          func(src *upset)
		files, dirs uint64
	}{
		"a directory":        {do: func(src *upset) { src.move("z/d", "a/sub/d") }, files: 7, dirs: 9},
		"a file":             {do: func(src *upset) { src.move("z/d/f", "b/c/g") }, files: 7, dirs: 9},
		"onto a copied file": {do: func(src *upset) { src.move("z/d/f", "b/c/f") }, files: 7, dirs: 9},
		"a new tree":         {do: func(src *upset) { src.file("a/sub/new/new/f", 0o600, []byte("new")) }, files: 8, dirs: 11},
		"a link and a pipe": {do: func(src *upset) {
			src.make("b/l", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "x"})
			src.make("b/p", vfs.CreateHow{Type: vfs.TypeFIFO, Set: mode(0o600)})
		}, files: 7, dirs: 9},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src, dst := lateTree(t), mem(t, memfs.Options{})
				src.do = func() { c.do(src) }
				o, v := options(t, src.tree, dst, "copy")
				s, err := Copy(t.Context(), o)
				if s.ExitCode(err) != ExitDone || s.DirsChanged > 0 || s.Dirs != c.dirs || s.Files != c.files {
					t.Errorf("%v, %+v\n%s", err, s, v)
				}
				if d := diff(src.list(src.root), dst.list(dst.at("copy"))); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

// unreadable is a file system of which one file cannot be opened.
type unreadable struct {
	vfs.FS
	file vfs.Handle
}

func (f unreadable) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	if at.H == f.file {
		return nil, vfs.Opened{}, vfs.ErrIO
	}
	return f.FS.Open(ctx, at, how)
}

// TestFailsOnce: a file that cannot be read, in a directory that is listed again as it has changed, is
// counted and told of once.
func TestFailsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, dst := lateTree(t), mem(t, memfs.Options{})
		src.do = func() { src.file("a/new", 0o644, []byte("new")) }
		o, v := options(t, src.tree, dst, "copy")
		o.Source.FS = unreadable{src.fs, src.at("a/old")}
		s, err := Copy(t.Context(), o)
		if s.ExitCode(err) != ExitIncomplete || s.Errors != 1 || strings.Count(v.String(), "a/old") != 1 {
			t.Errorf("%v, %+v\n%s", err, s, v)
		}
		if items := o.Progress.Snapshot(); items.Items() != items.Counts[progress.FoundItems] {
			t.Errorf("%d items done of %d", items.Items(), items.Counts[progress.FoundItems])
		}
	})
}

// TestLateNameIsFolded: a name that comes into a directory which was listed, and that the
// destination takes for one that was copied, has failed, and replaces nothing.
func TestLateNameIsFolded(t *testing.T) {
	for _, text := range []string{"the text of a/old", "the other"} {
		for _, name := range []string{"OLD", "SUB/f"} {
			synctest.Test(t, func(t *testing.T) {
				src, dst := lateTree(t), mem(t, memfs.Options{})
				src.do = func() {
					src.file("a/"+name, 0o644, []byte(text))
					for _, path := range []string{"a/" + name, "a/old"} {
						set := vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: epoch}
						if _, err := src.fs.SetAttr(context.Background(), src.at(path), &set, nil); err != nil {
							t.Error(err)
						}
					}
				}
				o, v := options(t, src.tree, dst, "copy")
				o.Dest.FS = folding{dst.fs, strings.ToLower, new(sync.Mutex)}
				s, err := Copy(t.Context(), o)
				if s.ExitCode(err) != ExitIncomplete || s.Errors != 1 || !strings.Contains(v.String(), "for one") {
					t.Errorf("%s: %v, %+v\n%s", name, err, s, v)
				}
				for _, path := range []string{"a/old", "a/sub/f"} {
					got, want := dst.list(dst.at("copy"))[path], src.list(src.root)[path]
					if text != "the other" && path == "a/old" {
						continue // which of the two that look alike has its name is open
					}
					if got != want {
						t.Errorf("%s is %q, want %q", path, got, want)
					}
				}
			})
		}
	}
}

// restless is a source whose directories d0 to d9 have another time whenever they are looked up.
type restless struct {
	*tree
	vfs.FS
	n atomic.Int64
}

func (f *restless) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, a, d vfs.Attr, err error) {
	h, a, d, err = f.FS.Lookup(ctx, dir, name)
	if name[0] == 'd' {
		a.Mtime = a.Mtime.Add(time.Duration(f.n.Add(1)))
	}
	return h, a, d, err
}

// TestChangesOnAndOn: a directory that changes again while it is looked at again is told of, and
// the copy ends.
func TestChangesOnAndOn(t *testing.T) {
	src := &restless{tree: mem(t, memfs.Options{})}
	src.FS = src.fs
	for i := range 5 {
		src.file(fmt.Sprintf("d%d/f", i), 0o644, []byte("text"))
	}
	src.settle()
	dst := mem(t, memfs.Options{})
	o, v := options(t, newTree(t, src), dst, "copy")
	s, err := Copy(t.Context(), o)
	if s.ExitCode(err) != ExitDone || s.DirsChanged != 5 || !strings.Contains(v.String(), `note dir_changed "d0"`) {
		t.Errorf("%v, %+v\n%s", err, s, v)
	}
	s2, err := Verify(t.Context(), VerifyOptions{Source: o.Source, Dest: Place{dst.fs, dst.at("copy")}, Pool: o.Pool, Now: o.Now, Progress: o.Progress})
	if s2.ExitCode(err) != ExitIncomplete || s2.DirsChanged != 5 || !strings.Contains(v.String(), `error dir_changed "d4"`) {
		t.Errorf("verify: %v, %+v\n%s", err, s2, v)
	}
}
