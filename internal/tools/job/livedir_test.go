package job

import (
	"context"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// upset is a source in which something happens once, before an operation on the tested
// object, when nothing else is going on. It needs a synctest bubble.
type upset struct {
	*tree
	op   string
	on   vfs.Handle
	once sync.Once
	do   func()
}

func newUpset(t *testing.T) *upset {
	u := &upset{}
	u.tree = mem(t, memfs.Options{Fault: func(_ context.Context, op string, h vfs.Handle) error {
		if op == u.op && h == u.on {
			u.once.Do(func() {
				synctest.Wait()
				u.do()
			})
		}
		return nil
	}})
	return u
}

func (u *upset) remove(dir vfs.Handle, name string, isDir bool) {
	if _, err := u.fs.Remove(context.Background(), dir, name, isDir); err != nil {
		u.t.Error(err)
	}
}

// TestCopyDirVanishes: a directory that is removed while it is copied is a note, and leaves
// no empty copy.
func TestCopyDirVanishes(t *testing.T) {
	for _, c := range []struct{ name, op, on string }{
		{"before its list is read", "acl", "d"},
		{"when its file's turn comes", "open", "d/f"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src, dst := newUpset(t), mem(t, memfs.Options{})
				d := src.dir("d")
				if c.on != "d" {
					src.file(c.on, 0o644, []byte("text"))
				}
				src.file("still", 0o644, []byte("text"))
				src.op, src.on = c.op, src.at(c.on)
				src.do = func() {
					if c.on != "d" {
						src.remove(d, "f", false)
					}
					src.remove(src.root, "d", true)
				}
				o, v := options(t, src.tree, dst, "copy")
				s, err := Copy(t.Context(), o)
				if s.ExitCode(err) != ExitDone || s.Errors != 0 || s.Vanished == 0 || s.Dirs != 1 {
					t.Errorf("%v, %+v\n%s", err, s, v)
				}
				if !strings.Contains(v.String(), "the directory vanished") {
					t.Errorf("the directory is not told of:\n%s", v)
				}
				if got := dst.list(dst.at("copy")); len(got) != 2 { // itself, and the file that is still there
					t.Errorf("left behind: %v", got)
				}
			})
		})
	}
}

// TestCopyDirReplaced: the contents of a directory that took another's place are not copied,
// and that is an error.
func TestCopyDirReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, dst := newUpset(t), mem(t, memfs.Options{})
		src.file("d/e/f", 0o644, []byte("text"))
		src.file("new/e/g", 0o644, []byte("more"))
		src.op, src.on = "open", src.at("d/e/f")
		e := src.at("d/e")
		src.do = func() {
			src.remove(e, "f", false)
			for _, names := range [][2]string{{"d", "old"}, {"new", "d"}} {
				if _, _, err := src.fs.Rename(context.Background(), src.root, names[0], src.root, names[1]); err != nil {
					t.Error(err)
				}
			}
			src.remove(src.at("old"), "e", true)
		}
		o, v := options(t, src.tree, dst, "copy")
		s, err := Copy(t.Context(), o)
		if s.ExitCode(err) != ExitIncomplete || s.Errors != 1 || !strings.Contains(v.String(), "replaced while") {
			t.Errorf("%v, %+v\n%s", err, s, v)
		}
	})
}

// TestCopyDirMoves: a directory that is moved away after its listing began is copied and
// counted, without the group's rights, as its list cannot be read any more. It is copied under
// its new name as well. If another has its name, that is an error, and that one is copied, too; if
// it comes back, nothing has happened.
func TestCopyDirMoves(t *testing.T) {
	for _, c := range []struct {
		then  string
		mode  uint32
		lost  uint64
		dirs  uint64
		exit  int
		tells string
	}{
		{"nothing", 0o705, 1, 3, ExitDone, "was moved or removed"},
		{"another", 0o755, 1, 3, ExitIncomplete, "its name is that of another directory now"},
		{"back", 0o755, 0, 2, ExitDone, ""},
	} {
		t.Run(c.then, func(t *testing.T) {
			src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
			src.file("d/f", 0o644, []byte("text"))
			src.settle()
			var once sync.Once
			f := &moving{FS: src.fs, root: src.root, on: src.at("d"), back: c.then == "back"}
			f.move = func() {
				once.Do(func() {
					if c.then != "back" {
						src.rename("d", "gone")
					}
					if c.then == "another" {
						src.file("d/new", 0o644, []byte("more"))
					}
				})
			}
			o, v := options(t, newTree(t, f), dst, "copy")
			s, err := Copy(t.Context(), o)
			if s.ExitCode(err) != c.exit || s.ModesLost != c.lost || s.Dirs != c.dirs || s.Vanished > 0 || s.Files < 1 {
				t.Errorf("%v, %+v\n%s", err, s, v)
			}
			if !strings.Contains(v.String(), c.tells) || c.tells == "" && len(v.list) > 0 {
				t.Errorf("it tells\n%s", v)
			}
			a, err := dst.fs.GetAttr(t.Context(), dst.at("copy/d"), vfs.MaskV3)
			is := f.on
			if c.then == "another" {
				is = src.at("d")
			}
			want, werr := src.fs.GetAttr(t.Context(), is, vfs.MaskV3)
			if c.then != "back" && len(dst.list(dst.at("copy/gone"))) != 2 {
				t.Errorf("under its new name it is %v", dst.list(dst.at("copy/gone")))
			}
			if err != nil || werr != nil || a.Mode != c.mode || !a.Mtime.Equal(want.Mtime) {
				t.Errorf("the copy has mode %o and %v, want %v; %v, %v", a.Mode, a.Mtime, want.Mtime, err, werr)
			}
		})
	}
}

// moving is a source in which a directory is moved away when its list is asked for. The
// directory's handle depends on its name.
type moving struct {
	vfs.FS
	root vfs.Handle
	on   vfs.Handle
	move func()
	back bool // and comes back

	asked atomic.Bool
	lists atomic.Int64 // of the root: the second finds the new name
}

func (f *moving) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, n uint32) iter.Seq2[*vfs.Entry, error] {
	if dir == f.root {
		f.lists.Add(1)
	}
	return f.FS.ReadDir(ctx, dir, from, want, n)
}

func (f *moving) ACL(ctx context.Context, h vfs.Handle) (vfs.ACL, error) {
	if h != f.on || f.lists.Load() > 1 {
		return vfs.ACL{}, nil
	}
	f.move()
	if f.asked.Swap(true) && f.back {
		return vfs.ACL{}, nil
	}
	return vfs.ACL{}, vfs.ErrStale
}

func (*moving) SetACL(context.Context, vfs.Handle, vfs.ACL) error { return vfs.ErrNotSupp }

func (tr *tree) rename(from, to string) {
	if _, _, err := tr.fs.Rename(context.Background(), tr.root, from, tr.root, to); err != nil {
		tr.t.Error(err)
	}
}

// TestCopyRootIsOpen: the directory that the copy becomes has its mode from the start, so
// that a job that is broken off does not lock its users out.
func TestCopyRootIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newUpset(t)
		src.op, src.on = "open", src.file("f", 0o644, []byte("text"))
		src.set(src.root, mode(0o2755))
		dst := mem(t, memfs.Options{})
		var during uint32
		src.do = func() {
			a, err := dst.fs.GetAttr(context.Background(), dst.at("copy"), vfs.MaskMode)
			if err != nil {
				t.Error(err)
			}
			during = a.Mode
		}
		o, v := options(t, src.tree, dst, "copy")
		s, err := Copy(t.Context(), o)
		if s.ExitCode(err) != ExitDone {
			t.Fatalf("%v, %+v\n%s", err, s, v)
		}
		if during&0o777 != 0o755 {
			t.Errorf("while it is filled its mode is %o", during)
		}
	})
}
