package iofs_test

import (
	"context"
	"iter"
	"testing"
	"testing/fstest"

	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
)

// sparse is a file system whose peer sends no attribute that it need not send,
// no handles in listings, names that no entry can have, and one that is gone.
type sparse struct{ vfs.FS }

func (s *sparse) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, attr, dirAttr vfs.Attr, err error) {
	h, _, _, err = s.FS.Lookup(ctx, dir, name)
	return h, attr, dirAttr, err
}

func (s *sparse) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	file, opened, err := s.FS.Open(ctx, at, how)
	opened.Attr = vfs.Attr{}
	return file, opened, err
}

func (s *sparse) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, _ vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		for _, name := range []string{"", ".", "..", "a/b", "a\x00b", "gone"} {
			if from == (vfs.Pos{}) && !yield(&vfs.Entry{Name: []byte(name)}, nil) {
				return
			}
		}
		for e, err := range s.FS.ReadDir(ctx, dir, from, 0, maxBytes) {
			if e != nil {
				e.Attr, e.Handle = vfs.Attr{}, vfs.Handle{}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func TestSparse(t *testing.T) {
	m := sampleOf(t, 100)
	f := iofs.New(t.Context(), &sparse{m.fs}, m.root())
	if err := fstest.TestFS(f, "hello.txt", "docs/big", "docs/none", "docs/same", "here", "docs/empty"); err != nil {
		t.Error(err)
	}
	file, err := f.Create("new")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("contents"); err != nil {
		t.Fatal(err)
	}
	if info, err := file.Stat(); err != nil || info.Size() != 8 || info.Mode() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
	closeFile(t, file)
	wantFile(t, f, "new", "contents")
}
