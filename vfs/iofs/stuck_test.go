package iofs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
)

// standing is a server that gives all entries of a directory one cookie, so that no
// listing can be taken up behind any of them, and whose files cannot be removed.
type standing struct {
	vfs.FS
	entries int
	lists   int
}

func (s *standing) ReadDir(context.Context, vfs.Handle, vfs.Pos, vfs.Mask, uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		if s.lists++; s.lists > 10 {
			yield(nil, errors.New("listed again and again"))
			return
		}
		for i := range s.entries {
			h, err := vfs.MakeHandle([]byte{byte(i), byte(i >> 8), 1})
			e := vfs.Entry{Name: fmt.Appendf(nil, "n%d", i), Handle: h, Attr: vfs.Attr{Valid: vfs.MaskV3, Type: vfs.TypeReg}}
			e.Next.Verf[0] = byte(s.lists)
			if !yield(&e, err) {
				return
			}
		}
	}
}

func (s *standing) Remove(context.Context, vfs.Handle, string, bool) (vfs.WCC, error) {
	return vfs.WCC{}, vfs.ErrAccess
}

// TestStandingStill ends what would otherwise list the same entries for ever.
func TestStandingStill(t *testing.T) {
	server := &standing{FS: memfs.New(memfs.Options{Mode: 0o777}), entries: 1000}
	f, err := iofs.Root(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Mkdir("d", 0o777); err != nil {
		t.Fatal(err)
	}
	file, err := f.Open("d")
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; err == nil; n++ {
		if _, err = file.(fs.ReadDirFile).ReadDir(100); n > server.entries {
			t.Fatal("it lists for ever")
		}
	}
	if errors.Is(err, io.EOF) || !errors.Is(err, vfs.ErrBadCookie) {
		t.Errorf("ReadDir: %v", err)
	}
	server.lists = 0
	if err := f.RemoveAll("d"); !errors.Is(err, vfs.ErrAccess) {
		t.Errorf("RemoveAll: %v", err)
	}
	if server.lists > 2 {
		t.Errorf("RemoveAll has listed %d times", server.lists)
	}
}
