package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/dirfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// folding is a file system that takes names for one if fold maps them to the same. It keeps
// the form in which a name was given first.
type folding struct {
	vfs.FS
	fold func(string) string
	mu   *sync.Mutex // one change of names at a time
}

// real is the form in which name is kept.
func (f folding) real(ctx context.Context, dir vfs.Handle, name string) string {
	for e, err := range f.FS.ReadDir(ctx, dir, vfs.Pos{}, 0, 0) {
		if err == nil && f.fold(string(e.Name)) == f.fold(name) {
			return string(e.Name)
		}
	}
	return name
}

func (f folding) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	return f.FS.Lookup(ctx, dir, f.real(ctx, dir, name))
}

func (f folding) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.FS.Create(ctx, dir, f.real(ctx, dir, name), how)
}

func (f folding) Link(ctx context.Context, h, dir vfs.Handle, name string) (vfs.Attr, vfs.WCC, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.FS.Link(ctx, h, dir, f.real(ctx, dir, name))
}

func (f folding) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	return f.FS.Remove(ctx, dir, f.real(ctx, dir, name), isDir)
}

func (f folding) Rename(ctx context.Context, a vfs.Handle, an string, b vfs.Handle, bn string) (vfs.WCC, vfs.WCC, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.FS.Rename(ctx, a, f.real(ctx, a, an), b, f.real(ctx, b, bn))
}

// foldCase folds case, foldForm how letters are composed.
func foldForm(name string) string { return strings.ReplaceAll(name, decomposed, composed) }

// clashing are names of which a destination that folds case or forms can keep only some.
func clashing(tr *tree) {
	for i, name := range []string{
		"Makefile", "makefile", "MAKEFILE", "other", "caf" + composed, "caf" + decomposed, "CAF" + composed,
		"Lib/a", "lib/a", "Lib/b", "lib/c", "deep/x/File", "deep/x/file",
	} {
		tr.file(name, 0o644, pattern(100+i, byte(i)))
	}
	tr.link(tr.at("other"), "hard")
	tr.link(tr.at("other"), "HARD")
	tr.make("Sym", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "a"})
	tr.make("sym", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "b"})
	tr.settle()
}

// keptOrTold fails for each file of src that is neither in dst with its contents nor reported.
func keptOrTold(t *testing.T, src, dst *tree, v *events) {
	t.Helper()
	for path, want := range src.list(src.root) {
		told, is := false, ""
		for _, e := range v.list {
			told = told || e.Type == "error" && (e.Path == path || strings.HasPrefix(path, e.Path+"/"))
		}
		if r, err := vfs.Resolve(t.Context(), dst.fs, dst.root, "copy/"+path, false); err == nil {
			is, _, _ = strings.Cut(dst.list(r.Handle)[""], " linked to ")
		}
		want, _, _ = strings.Cut(want, " linked to ")
		if !told && (is == "" || !strings.HasPrefix(want, "directory") && is != want) {
			t.Errorf("%q is %.100s, and nobody was told", path, is)
		}
	}
}

// TestCopyFolds: each name that the destination cannot keep apart is reported, and nothing
// that this run has made is replaced.
func TestCopyFolds(t *testing.T) {
	for _, tt := range []struct {
		what string
		fold func(string) string
		lost uint64
	}{
		{"nothing", func(s string) string { return s }, 0},
		{"case", strings.ToLower, 7},
		{"forms", foldForm, 1},
	} {
		t.Run(tt.what, func(t *testing.T) {
			src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
			clashing(src)
			dir := recordDir(t)
			for range 3 { // and again, from a record, in whatever order
				to := newTree(t, folding{dst.fs, tt.fold, new(sync.Mutex)})
				o, v := options(t, src, to, "copy")
				o.Record, o.ID = dir, "this job"
				s, err := Copy(t.Context(), o)
				if err != nil || s.Errors != tt.lost {
					t.Errorf("%v, %+v, want %d errors\n%s", err, s, tt.lost, v)
				}
				keptOrTold(t, src, to, v)
			}
			if temps := dst.temps(); len(temps) > 0 {
				t.Errorf("left behind: %q", temps)
			}
		})
	}
}

// TestCopyFoldsMerge: objects from before the run are replaced, as cp(1) does. A directory
// from before the run is probed.
func TestCopyFoldsMerge(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.file("d/file", 0o644, []byte("new"))
	src.file("d/x", 0o644, []byte("x"))
	src.file("d/X", 0o644, []byte("X"))
	dst.file("d/FILE", 0o644, []byte("old"))
	to := newTree(t, folding{dst.fs, strings.ToLower, new(sync.Mutex)})
	o, v := options(t, src, to, "")
	s, err := Copy(t.Context(), o)
	if err != nil || s.Errors != 1 {
		t.Errorf("%v, %+v\n%s", err, s, v)
	}
	if got := string(dst.read(to.at("d/FILE"), 3)); got != "new" {
		t.Errorf("the file holds %q", got)
	}
}

// foldsIn folds names in one directory alone, like a directory of ext4 to which somebody gave
// casefold, and counts what is created there.
type foldsIn struct {
	vfs.FS
	fold    folding
	dir     vfs.Handle
	created *atomic.Int64
}

func (f foldsIn) in(dir vfs.Handle) vfs.FS {
	if dir == f.dir {
		return f.fold
	}
	return f.FS
}

func (f foldsIn) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	return f.in(dir).Lookup(ctx, dir, name)
}

func (f foldsIn) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	if dir == f.dir {
		f.created.Add(1)
	}
	return f.in(dir).Create(ctx, dir, name, how)
}

func (f foldsIn) Link(ctx context.Context, h, dir vfs.Handle, name string) (vfs.Attr, vfs.WCC, error) {
	return f.in(dir).Link(ctx, h, dir, name)
}

func (f foldsIn) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	return f.in(dir).Remove(ctx, dir, name, isDir)
}

func (f foldsIn) Rename(ctx context.Context, a vfs.Handle, an string, b vfs.Handle, bn string) (vfs.WCC, vfs.WCC, error) {
	return f.in(b).Rename(ctx, a, an, b, bn)
}

// TestCopyFoldsInOneDirectory: somebody else made a directory that folds names, below one
// that does not. It is tried out, by resumed jobs too, as soon as two names may be one.
func TestCopyFoldsInOneDirectory(t *testing.T) {
	for _, tt := range []struct {
		what  string
		fold  func(string) string
		names []string
		lost  uint64
		made  int64 // names created in the directory, the probe's included
	}{
		{"names that are one", strings.ToLower, []string{"File", "file", "FILE", "x"}, 2, 2 + 1},
		{"many, then two that are one", strings.ToLower, append(numbered(3*foldStripes), "0A"), 1, 3*foldStripes + 1},
		{"a letter of two forms", foldForm, []string{"e", "caf" + composed, "caf" + decomposed}, 1, 2 + 1},
		{"names that only look alike", func(s string) string { return s }, []string{"File", "file", "x"}, 0, 3 + 1},
		{"names apart", strings.ToLower, numbered(100), 0, 100},
	} {
		for _, resumed := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.what, ", resumed ", resumed), func(t *testing.T) {
				src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
				src.dir("d")
				dst.dir("copy")
				at := dst.dir("copy/d")
				var created atomic.Int64
				to := newTree(t, foldsIn{dst.fs, folding{dst.fs, tt.fold, new(sync.Mutex)}, at, &created})
				o, v := options(t, src, to, "copy")
				o.Record, o.ID = recordDir(t), "this job"
				if resumed {
					if s, err := Copy(t.Context(), o); err != nil || s.Errors != 0 {
						t.Fatalf("%v, %+v\n%s", err, s, v)
					}
				}
				for _, name := range tt.names {
					src.make("d/"+name, vfs.CreateHow{Type: vfs.TypeSymlink, Target: "of " + name})
				}
				src.settle()
				s, err := Copy(t.Context(), o)
				if err != nil || s.Errors != tt.lost || created.Load() != tt.made {
					t.Errorf("%v, %+v, %d names created; want %d errors, %d names\n%s", err, s, created.Load(), tt.lost, tt.made, v)
				}
				keptOrTold(t, src, to, v)
			})
		}
	}
}

// TestMadeEarlyBound: a directory of more names than are remembered is tried out.
func TestMadeEarlyBound(t *testing.T) {
	m := new(Made)
	names := numbered(maxEarly + 1)
	for i, name := range names {
		end, ok := m.makeEarly(name)
		if ok != (i < maxEarly) {
			t.Fatalf("name %d: %v", i, ok)
		}
		if ok {
			end(true)
		}
	}
}

// numbered are n names that differ in more than case.
func numbered(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(i, "a"))
	}
	return names
}

// TestCopyFoldsTogether: several copies into one directory know of each other.
func TestCopyFoldsTogether(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.file("Makefile", 0o644, []byte("1"))
	src.file("makefile", 0o644, []byte("2"))
	to := newTree(t, folding{dst.fs, strings.ToLower, new(sync.Mutex)})
	made := new(Made)
	for i, name := range []string{"Makefile", "makefile"} {
		o, v := options(t, src, to, name)
		o.Source.Handle, o.Made = src.at(name), made
		if s, err := Copy(t.Context(), o); err != nil || s.Errors != uint64(i) {
			t.Errorf("%s: %v, %+v\n%s", name, err, s, v)
		}
	}
	if got := string(dst.read(to.at("Makefile"), 1)); got != "1" {
		t.Errorf("the first one holds %q", got)
	}
}

// TestCopyFoldsExt4: ext4 with casefold, where it can be mounted.
func TestCopyFoldsExt4(t *testing.T) {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("to mount ext4 with casefold takes root on Linux")
	}
	at, image := t.TempDir(), filepath.Join(t.TempDir(), "image")
	for _, args := range [][]string{
		{"truncate", "-s", "32M", image}, {"mkfs.ext4", "-q", "-O", "casefold", image}, {"mount", "-o", "loop", image, at},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v: %v: %s", args, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	to := filepath.Join(at, "to")
	if err := errors.Join(os.Mkdir(to, 0o755), exec.Command("chattr", "+F", to).Run()); err != nil {
		t.Skipf("chattr +F: %v", err)
	}
	f, err := dirfs.New(to, dirfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := vfs.CloseFS(f); err != nil {
			t.Error(err)
		}
	})
	src, dst := mem(t, memfs.Options{}), newTree(t, f)
	clashing(src)
	o, v := options(t, src, dst, "copy")
	s, err := Copy(t.Context(), o)
	if err != nil || s.Errors != 8 { // it folds forms as well
		t.Errorf("%v, %+v\n%s", err, s, v)
	}
	keptOrTold(t, src, dst, v)
}
