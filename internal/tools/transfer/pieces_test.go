package transfer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// inPieces is an FS whose files are kept in pieces of so many bytes, and which counts the reads that are not of whole ones.
type inPieces struct {
	vfs.FS
	size   uint64
	end    func(off uint64) (uint64, error) // nil: by size
	mu     sync.Mutex
	reads  int
	broken int
}

type pieceFile struct {
	vfs.File
	in *inPieces
}

func (p *inPieces) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	file, opened, err := p.FS.Open(ctx, at, how)
	if err != nil {
		return nil, opened, err
	}
	return pieceFile{file, p}, opened, nil
}

func (f pieceFile) PieceEnd(_ context.Context, off uint64) (uint64, error) {
	if f.in.end != nil {
		return f.in.end(off)
	}
	return (off/f.in.size + 1) * f.in.size, nil
}

func (f pieceFile) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	n, eof, err := f.File.ReadAt(ctx, p, off, post)
	f.in.mu.Lock()
	defer f.in.mu.Unlock()
	if f.in.reads++; off%f.in.size != 0 || uint64(len(p)) != f.in.size && !eof {
		f.in.broken++
	}
	return n, eof, err
}

// TestWholePieces copies and compares many files at once, with fewer slots than pieces take. Each piece is read once, as a whole, and
// the memory stays within the budget.
func TestWholePieces(t *testing.T) {
	const slots, files, pieces = 7, 6, 5
	const size = pieces*(3<<20) - 5
	src, dst := mem(t, memfs.Options{ReadMax: 4 << 20}), mem(t, memfs.Options{})
	want := src.file("f", pattern(size))
	in := &inPieces{FS: src.fs, size: 3 << 20}
	from := want
	from.FS = in
	o := options(t)
	o.Budget, o.Verify = NewBudget(slots), true
	var mu sync.Mutex
	most := int64(0)
	o.Moved = func(int64) {
		mu.Lock()
		defer mu.Unlock()
		most = max(most, o.Pool.Bytes())
	}
	var wg sync.WaitGroup
	for i := range files {
		wg.Go(func() {
			name := fmt.Sprint(i)
			if _, err := File(t.Context(), from, dst.target(name), o); err != nil {
				t.Error(err)
				return
			}
			if c, err := Compare(t.Context(), from, dst.source(name), size, o); err != nil || c.Differ || c.Bytes != size {
				t.Errorf("%+v, %v", c, err)
			}
		})
	}
	wg.Wait()
	if in.reads != 2*files*pieces || in.broken > 0 {
		t.Errorf("%d reads, %d not of a whole piece; want %d", in.reads, in.broken, 2*files*pieces)
	}
	// Buffers are powers of two, and a comparison has two for each piece.
	if most > 2*2*slots<<20 || most == 0 || o.Budget.taken.Load() != 0 {
		t.Errorf("%d bytes of memory at once, and %d slots are taken", most, o.Budget.taken.Load())
	}
}

// TestOddPieces: where pieces are said to be that cannot be, or are too long, a file is read in chunks.
func TestOddPieces(t *testing.T) {
	const size = 1_000_000
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	from := src.file("f", pattern(size))
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		end func(off uint64) (uint64, error)
		err error
	}{
		"before":   {func(off uint64) (uint64, error) { return off - min(off, 1), nil }, nil},
		"here":     {func(off uint64) (uint64, error) { return off, nil }, nil},
		"too long": {func(off uint64) (uint64, error) { return off + maxPiece + 1, nil }, nil},
		"no end":   {func(uint64) (uint64, error) { return 1<<64 - 1, nil }, nil},
		"behind":   {func(off uint64) (uint64, error) { return off + size, nil }, nil},
		"short":    {func(off uint64) (uint64, error) { return off + 77_777, nil }, nil},
		"fails":    {func(uint64) (uint64, error) { return 0, broken }, broken},
	} {
		in, counts := from, &inPieces{FS: src.fs, size: 1, end: c.end}
		in.FS = counts
		o := options(t)
		_, err := File(t.Context(), in, dst.target(name), o)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: copy: %v", name, err)
		}
		if cmp, err := Compare(t.Context(), from, in, size, o); !errors.Is(err, c.err) || cmp.Differ || err == nil && cmp.Bytes != size {
			t.Errorf("%s: compare: %+v, %v", name, cmp, err)
		}
		if c.err != nil {
			continue
		}
		if name != "behind" && counts.reads < size/77_777 {
			t.Errorf("%s: all that is said to be a piece is read at once", name)
		}
		if cmp, err := Compare(t.Context(), from, dst.source(name), size, o); err != nil || cmp.Differ || cmp.Bytes != size {
			t.Errorf("%s: the copy: %+v, %v", name, cmp, err)
		}
	}
}
