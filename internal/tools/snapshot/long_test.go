package snapshot

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// one makes a snapshot of a tree with one file, and opens the file.
func one(t *testing.T, w *Writer, store object.Store, size int, c Content) vfs.File {
	t.Helper()
	e := &Entry{Name: "f", Attr: vfs.Attr{Valid: vfs.MaskType | vfs.MaskSize, Type: vfs.TypeReg, Size: uint64(size)}, Content: c}
	root := &Entry{Attr: vfs.Attr{Valid: vfs.MaskType, Type: vfs.TypeDir}}
	d := w.Dir("")
	if err := errors.Join(d.Add(t.Context(), e), d.Close(t.Context(), root)); err != nil {
		t.Fatal(err)
	}
	f := finish(t, w, store, Meta{}, root).FS()
	file, _, err := f.Open(t.Context(), vfs.At{H: newTree(t, f).at("f")}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func writerOf(t *testing.T) (*Writer, object.Store) {
	t.Helper()
	store := object.NewMemory(object.MemoryOptions{})
	w, err := NewWriter(store)
	if err != nil {
		t.Fatal(err)
	}
	return w, store
}

// TestEven wants pieces of the largest size, which pack to next to nothing, to be read again.
func TestEven(t *testing.T) {
	const size = 2*maxPiece + 5
	w, store := writerOf(t)
	c, n, err := w.Data(t.Context(), io.LimitReader(zeros{}, size), size, nil)
	if err != nil || n != size || len(c.Pieces) != 3 || c.Pieces[0].Size != maxPiece {
		t.Fatalf("%d bytes, in %+v: %v", n, c.Pieces, err)
	}
	if stored, _ := w.Written(); stored > 1<<16 {
		t.Errorf("%d bytes were stored", stored)
	}
	f := one(t, w, store, size, c)
	b := bytes.Repeat([]byte{1}, 100)
	if n, eof, err := f.ReadAt(t.Context(), b, size-50, nil); n != 50 || !eof || err != nil || !bytes.Equal(b[:50], make([]byte, 50)) {
		t.Errorf("%d, %v, %v", n, eof, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestLists wants a file whose pieces are in lists to be read from anywhere, and a wrong list to be found.
func TestLists(t *testing.T) {
	const size = 10
	w, store := writerOf(t)
	want := noise(3, 30*size)
	var c Content
	for b := range slices.Chunk(want, size) {
		p, err := w.sink.put(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		if c.Pieces = append(c.Pieces, p); len(c.Pieces) == 10 {
			if err := w.list(t.Context(), &c); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(c.Lists) != 3 || len(c.Pieces) != 0 {
		t.Fatalf("%+v", c)
	}
	f := one(t, w, store, len(want), c)
	for _, r := range [][2]int{{0, 300}, {5, 10}, {95, 10}, {199, 2}, {290, 10}, {299, 1}, {0, 1}, {150, 150}} {
		b := make([]byte, r[1])
		n, _, err := f.ReadAt(t.Context(), b, uint64(r[0]), nil)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "a range", b[:n], want[r[0]:r[0]+r[1]])
	}
	c.Lists[1].Data++
	c.Lists[2].Data--
	if _, _, err := one(t, w, store, len(want), c).ReadAt(t.Context(), make([]byte, 300), 0, nil); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// TestDeep wants a path that is longer than a system call takes to be in a snapshot as any other.
func TestDeep(t *testing.T) {
	tr := mem(t)
	path := strings.Repeat(strings.Repeat("d", 250)+"/", 20) + "file"
	tr.file(path, []byte("deep"))
	s := take(t, tr, object.NewMemory(object.MemoryOptions{}), Meta{Complete: true})
	verify(t, tr.fs, s.FS())
	dir, name := newTree(t, s.FS()).place(path)
	h, _, _, err := s.FS().Lookup(t.Context(), dir, name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(t.Context(), s.FS(), h)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the file", got, []byte("deep"))
	if _, _, _, err := s.FS().Lookup(t.Context(), dir, ".."); !errors.Is(err, vfs.ErrNotSupp) {
		t.Error(err)
	}
}
