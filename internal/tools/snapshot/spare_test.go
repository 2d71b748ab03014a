package snapshot

import (
	"bytes"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// TestLentIsLeftAlone: memory of pieces is used again, but not while somebody reads it, and not what somebody keeps.
func TestLentIsLeftAlone(t *testing.T) {
	const size, count = 1 << 20, heldBytes>>20 + 24 // more than are held
	store := object.NewMemory(object.MemoryOptions{})
	g, err := newGetter(store)
	if err != nil {
		t.Fatal(err)
	}
	var pieces [count]Piece
	for i := range pieces {
		b := bytes.Repeat([]byte{byte(i)}, size+i)
		sum := object.SumOf(b)
		if _, _, err := object.PutContent(t.Context(), store, sum, int64(len(b)), bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
		pieces[i] = Piece{Sum: digest(sum), Size: int64(len(b))}
	}
	is := func(b []byte, i int) {
		t.Helper()
		if len(b) != size+i || bytes.Count(b, []byte{byte(i)}) != len(b) {
			t.Errorf("piece %d has other bytes: its memory was used for another", i)
		}
	}
	key := func(i int) string { return object.ContentKey(object.Sum(pieces[i].Sum)) }
	lend := func(i int, do func(b []byte)) {
		t.Helper()
		if err := g.lend(t.Context(), key(i), &pieces[i], do); err != nil {
			t.Fatal(err)
		}
	}
	keep := func(i int) []byte {
		t.Helper()
		b, err := g.piece(t.Context(), key(i), &pieces[i])
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	others := func() { // push all else out of the memory, twice
		for i := range 2 * (count - 3) {
			i = 3 + i%(count-3)
			lend(i, func(b []byte) { is(b, i) })
		}
	}
	kept := keep(0)
	var both []byte
	lend(1, func(b []byte) {
		others()
		is(b, 1)
	})
	lend(2, func([]byte) {
		both = keep(2)
		others()
	})
	others()
	is(kept, 0)
	is(both, 2)
	if g.spare.size > spareBytes || len(g.spare.all) == 0 {
		t.Errorf("%d bytes in %d buffers wait for another use", g.spare.size, len(g.spare.all))
	}
}
