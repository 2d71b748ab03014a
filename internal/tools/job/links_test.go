package job

import (
	"context"
	"iter"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// edited is a file system whose attributes are edited.
type edited struct {
	vfs.FS
	edit func(a *vfs.Attr)
}

func (f edited) GetAttr(ctx context.Context, h vfs.Handle, m vfs.Mask) (vfs.Attr, error) {
	a, err := f.FS.GetAttr(ctx, h, m)
	f.edit(&a)
	return a, err
}

func (f edited) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	h, a, d, err := f.FS.Lookup(ctx, dir, name)
	f.edit(&a)
	return h, a, d, err
}

func (f edited) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	file, o, err := f.FS.Open(ctx, at, how)
	f.edit(&o.Attr)
	return file, o, err
}

func (f edited) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, n uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		for e, err := range f.FS.ReadDir(ctx, dir, from, want, n) {
			if err == nil {
				f.edit(&e.Attr)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// oneID reports one id and two names for all files of a tree. A server does so if it puts
// several file systems behind one id, or if file ids are used again during a listing.
func oneID(tr *tree) *tree {
	return newTree(tr.t, edited{tr.fs, func(a *vfs.Attr) {
		if a.Type == vfs.TypeReg {
			a.FSID, a.FileID, a.Nlink = [2]uint64{1, 1}, 7, 2
		}
	}})
}

// TestCopySameID: files that share nothing but an id stay files of their own, each with its
// contents.
func TestCopySameID(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.file("a", 0o644, pattern(1000, 1))
	src.file("d/b", 0o644, pattern(1000, 2))
	src.file("d/c", 0o644, pattern(2000, 3))
	src.settle()
	o, v := options(t, oneID(src), dst, "copy")
	s, err := Copy(t.Context(), o)
	if s.ExitCode(err) != ExitDone || s.Files != 3 || s.Hardlinks != 0 || s.LinksSplit != 2 {
		t.Errorf("%v, %+v\n%s", err, s, v)
	}
	if d := diff(src.list(src.root), dst.list(dst.at("copy"))); d != "" {
		t.Error(d)
	}
}

// TestVerifySameID: contents are compared unless two names are one file for certain.
func TestVerifySameID(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	for _, tr := range []*tree{src, dst} {
		tr.file("a", 0o644, pattern(1000, 1))
		tr.file("b", 0o644, pattern(1000, 2))
	}
	dst.write(dst.at("b"), 500, []byte("another"))
	dst.write(dst.at("a"), 500, []byte("another"))
	src.settle()
	dst.settle()
	o, v := options(t, oneID(src), oneID(dst), "")
	s, err := Verify(t.Context(), VerifyOptions{Source: o.Source, Dest: o.Dest, Pool: o.Pool, Now: o.Now, Progress: o.Progress})
	if s.ExitCode(err) != ExitDifferent || s.Differences != 2 || s.Files != 2 {
		t.Errorf("%v, %+v\n%s", err, s, v)
	}
}

// TestCopyLinksBesideAnother: another job into the same place replaces the copy that is to
// get a further name. If it made the same file, that gets the name; another file does not.
func TestCopyLinksBesideAnother(t *testing.T) {
	for _, c := range []struct {
		name         string
		size         int
		links, split uint64
	}{{"its copy", 1000, 1, 0}, {"another file", 2000, 0, 1}} {
		t.Run(c.name, func(t *testing.T) {
			src := mem(t, memfs.Options{})
			var once sync.Once
			var replace func()
			dst := mem(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
				if op == "link" {
					once.Do(replace)
				}
				return nil
			}})
			src.link(src.file("a", 0o644, pattern(1000, 1)), "b")
			src.settle()
			replace = func() {
				ctx, dir := context.Background(), dst.at("copy")
				for _, name := range []string{"a", "b"} { // one of them is there
					_, a, _, err := dst.fs.Lookup(ctx, dir, name)
					if err != nil {
						continue
					}
					if _, err := dst.fs.Remove(ctx, dir, name, false); err != nil {
						t.Error(err)
					}
					h := dst.file("copy/"+name, 0o644, pattern(c.size, 1))
					dst.set(h, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: a.Mtime})
				}
			}
			o, v := options(t, src, dst, "copy")
			s, err := Copy(t.Context(), o)
			if s.ExitCode(err) != ExitDone || s.Hardlinks != c.links || s.LinksSplit != c.split {
				t.Errorf("%v, %+v\n%s", err, s, v)
			}
		})
	}
}
