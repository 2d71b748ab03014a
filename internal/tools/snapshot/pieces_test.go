package snapshot

import (
	"bytes"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

var _ transfer.Piecer = (*file)(nil)

// TestPieceEnd reads files piece by piece, as PieceEnd cuts them, without any of their bytes in memory: each of their objects, or
// ranges of packs, is read once.
func TestPieceEnd(t *testing.T) {
	tr := mem(t)
	want := map[string][]byte{
		"small":  noise(1, 1000),
		"whole":  noise(2, smallFile+1),
		"packed": bytes.Repeat([]byte("packed "), smallFile),
		"cut":    noise(3, wholeFile+1),
		"sparse": append(append(noise(4, 8192), make([]byte, 1<<20)...), noise(5, 8192)...),
	}
	for name, b := range want {
		if name == "sparse" {
			h := tr.file(name, b[:8192])
			tr.write(h, uint64(len(b)-8192), b[len(b)-8192:])
			continue
		}
		tr.file(name, b)
	}
	store := &counted{Store: object.NewMemory(object.MemoryOptions{})}
	s := take(t, tr, store, Meta{Name: "n", Time: epoch})
	for name, b := range want {
		h := newTree(t, s.FS()).at(name)
		f, _, err := s.FS().Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
		if err != nil {
			t.Fatal(err)
		}
		before, pieces := store.gets.Load(), int64(0)
		got := make([]byte, 0, len(b))
		for len(got) < len(b) {
			off := uint64(len(got))
			end, err := f.(transfer.Piecer).PieceEnd(t.Context(), off)
			if err != nil || end <= off || end > uint64(len(b)) {
				t.Fatalf("%s: at %d: the end is %d: %v", name, off, end, err)
			}
			p := make([]byte, end-off)
			n, eof, err := f.ReadAt(t.Context(), p, off, nil)
			if err != nil || uint64(n) != end-off || eof != (end == uint64(len(b))) {
				t.Fatalf("%s: %d of %d bytes at %d, %v, %v", name, n, len(p), off, eof, err)
			}
			if got = append(got, p...); bytes.Count(p, []byte{0}) < len(p) {
				pieces++
			}
		}
		same(t, name, got, b)
		if name == "sparse" {
			pieces = 1 // it goes on behind the hole, and stays in memory until then
		}
		if n := store.gets.Load() - before; n != pieces {
			t.Errorf("%s: %d Gets for %d pieces", name, n, pieces)
		}
		if end, err := f.(transfer.Piecer).PieceEnd(t.Context(), uint64(len(b))); err != nil || end != uint64(len(b)) {
			t.Errorf("%s: behind the end: %d, %v", name, end, err)
		}
		if err := f.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := f.(transfer.Piecer).PieceEnd(t.Context(), 0); err == nil {
			t.Errorf("%s: a closed file has pieces", name)
		}
	}
	if s.get.size > smallFile {
		t.Errorf("%d bytes are kept in memory of what was read whole", s.get.size)
	}
}
