package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// file is an open file of a snapshot. A read fetches the pieces that it needs, whole, and compares each
// with its sum.
type file struct {
	s      *Snapshot
	e      *Entry
	size   int64
	holes  []Extent
	before []int64 // how many bytes of holes there are before each hole
	starts []int64 // where each piece, or list, begins in the data; and the end
	closed atomic.Bool

	mu     sync.Mutex
	listed int // which list was decoded last; -1: none
	pieces []Piece
	begins []int64
}

var _ vfs.HoleSeeker = (*file)(nil)

// open opens a regular file.
func (s *Snapshot) open(ctx context.Context, e *Entry) (*file, error) {
	f := &file{s: s, e: e, size: int64(e.Attr.Size), holes: e.Content.Holes, listed: -1}
	c := &e.Content
	at := int64(0)
	for i := range c.Pieces {
		f.starts = append(f.starts, at)
		at += c.Pieces[i].Size
	}
	for i := range c.Lists {
		f.starts = append(f.starts, at)
		at += c.Lists[i].Data
	}
	f.starts = append(f.starts, at)
	if c.Sparse != nil {
		b, err := s.piece(ctx, c.Sparse)
		if err != nil {
			return nil, err
		}
		if f.holes, err = decodeHoles(b, at, f.size); err != nil {
			return nil, damaged(object.ContentKey(object.Sum(c.Sparse.Sum)), err)
		}
	}
	sum := int64(0)
	for _, h := range f.holes {
		f.before = append(f.before, sum)
		sum += h.Len
	}
	return f, nil
}

// use is the error of a call whose context has ended, or that comes after Close.
func (f *file) use(ctx context.Context) error {
	if f.closed.Load() {
		return vfs.ErrInval
	}
	return ctx.Err()
}

// ReadAt implements vfs.File.
func (f *file) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	if err := f.use(ctx); err != nil {
		return 0, false, err
	}
	if post != nil {
		*post = f.e.Attr
	}
	if off >= uint64(f.size) {
		return 0, true, nil
	}
	p = p[:min(int64(len(p)), f.size-int64(off))]
	for n < len(p) {
		got, err := f.some(ctx, p[n:], int64(off)+int64(n))
		if n += got; err != nil {
			return n, false, err
		}
	}
	return n, int64(off)+int64(n) == f.size, nil
}

// some reads what lies in one piece or hole at off, which is before the end.
func (f *file) some(ctx context.Context, p []byte, off int64) (int, error) {
	i := f.hole(off)
	data := off
	if i < len(f.holes) {
		h := f.holes[i]
		if h.Off <= off {
			n := min(int64(len(p)), h.Off+h.Len-off)
			clear(p[:n])
			return int(n), nil
		}
		p = p[:min(int64(len(p)), h.Off-off)]
		data -= f.before[i]
	} else if i > 0 {
		data -= f.before[i-1] + f.holes[i-1].Len
	}
	piece, in, err := f.piece(ctx, data)
	if err != nil {
		return 0, err
	}
	if in == 0 && int64(len(p)) >= piece.Size {
		return int(piece.Size), f.s.into(ctx, &piece, p[:piece.Size])
	}
	n := 0
	err = f.s.lend(ctx, &piece, func(b []byte) { n = copy(p, b[in:]) })
	return n, err
}

// PieceEnd implements transfer.Piecer.
func (f *file) PieceEnd(ctx context.Context, off uint64) (uint64, error) {
	if err := f.use(ctx); err != nil {
		return 0, err
	}
	if off >= uint64(f.size) {
		return uint64(f.size), nil
	}
	i, at := f.hole(int64(off)), int64(off)
	end := f.size
	if i < len(f.holes) {
		h := f.holes[i]
		if h.Off <= at {
			return uint64(h.Off + h.Len), nil
		}
		end = h.Off
	}
	if i > 0 {
		at -= f.before[i-1] + f.holes[i-1].Len
	}
	piece, in, err := f.piece(ctx, at)
	if err != nil {
		return 0, err
	}
	return min(off+uint64(piece.Size-in), uint64(end)), nil
}

// hole is the first hole that ends behind off, or how many there are.
func (f *file) hole(off int64) int {
	return sort.Search(len(f.holes), func(i int) bool { return f.holes[i].Off+f.holes[i].Len > off })
}

// piece finds the piece that has a byte of the data, and where in it.
func (f *file) piece(ctx context.Context, data int64) (p Piece, in int64, err error) {
	i := sort.Search(len(f.starts), func(i int) bool { return f.starts[i] > data }) - 1
	in = data - f.starts[i]
	c := &f.e.Content
	if len(c.Lists) == 0 {
		return c.Pieces[i], in, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listed != i {
		l := &c.Lists[i]
		b, err := f.s.piece(ctx, &l.Piece)
		if err != nil {
			return p, 0, err
		}
		f.listed = -1
		if f.pieces, f.begins, err = decodeList(b, l.Data); err != nil {
			return p, 0, damaged(object.ContentKey(object.Sum(l.Sum)), err)
		}
		f.listed = i
	}
	j := sort.Search(len(f.begins), func(j int) bool { return f.begins[j] > in }) - 1
	return f.pieces[j], in - f.begins[j], nil
}

// decodeList reads a list of pieces, which have data bytes.
func decodeList(b []byte, data int64) (pieces []Piece, begins []int64, err error) {
	at := int64(0)
	for len(b) > 0 {
		var row []byte
		if row, b, err = cutLine(b); err != nil {
			return nil, nil, err
		}
		var p Piece
		if err := unmarshal(row, &p); err != nil {
			return nil, nil, err
		}
		if err := p.check(maxPiece); err != nil {
			return nil, nil, err
		}
		if p.Pack != nil {
			return nil, nil, errors.New("a list with a range of a pack")
		}
		pieces, begins = append(pieces, p), append(begins, at)
		at += p.Size // at most maxPlain lines of maxPiece
	}
	if at != data {
		return nil, nil, fmt.Errorf("a list of %d bytes has pieces of %d", data, at)
	}
	return pieces, begins, nil
}

// NextData implements vfs.HoleSeeker.
func (f *file) NextData(ctx context.Context, off uint64) (uint64, error) {
	if err := f.use(ctx); err != nil {
		return 0, err
	}
	for off < uint64(f.size) {
		i := f.hole(int64(off))
		if i == len(f.holes) || uint64(f.holes[i].Off) > off {
			return off, nil
		}
		off = uint64(f.holes[i].Off + f.holes[i].Len)
	}
	return 0, io.EOF
}

// NextHole implements vfs.HoleSeeker.
func (f *file) NextHole(ctx context.Context, off uint64) (uint64, error) {
	if err := f.use(ctx); err != nil {
		return 0, err
	}
	if off >= uint64(f.size) {
		return uint64(f.size), nil
	}
	if i := f.hole(int64(off)); i < len(f.holes) {
		return max(off, uint64(f.holes[i].Off)), nil
	}
	return uint64(f.size), nil
}

// WriteAt is vfs.ErrROFS.
func (f *file) WriteAt(ctx context.Context, _ []byte, _ uint64, _ vfs.Stability, _ *vfs.Written) (int, error) {
	return 0, f.refuse(ctx)
}

// Commit is vfs.ErrROFS.
func (f *file) Commit(ctx context.Context, _, _ uint64, _ *vfs.Written) error { return f.refuse(ctx) }

// Truncate is vfs.ErrROFS.
func (f *file) Truncate(ctx context.Context, _ uint64) (vfs.WCC, error) {
	return vfs.WCC{}, f.refuse(ctx)
}

func (f *file) refuse(ctx context.Context) error {
	if err := f.use(ctx); err != nil {
		return err
	}
	return vfs.ErrROFS
}

// Close implements vfs.File.
func (f *file) Close(context.Context) error {
	if f.closed.Swap(true) {
		return vfs.ErrInval
	}
	return nil
}
