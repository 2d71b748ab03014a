package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nfsbox/nfsbox/vfs"
)

// maxPiece bounds the pieces that a [Piecer] is asked for whole, in bytes. Longer ones are read in chunks.
const maxPiece = 16 << 20

// Piecer is a File that keeps its bytes in pieces, and has to read all of a piece for any part of it: a reader that takes several parts
// of many pieces at once may have each read as often. It is found with [vfs.As], and safe for concurrent use.
type Piecer interface {
	// PieceEnd returns where the piece ends that has the byte at off, which is before the end of the file.
	PieceEnd(ctx context.Context, off uint64) (uint64, error)
}

// piece is a part of a file: at most a chunk of data, a piece of a Piecer, or a hole of any length.
type piece struct {
	off, n uint64
	hole   bool
}

// held is for how many bytes a piece takes memory.
func (p *piece) held() uint64 {
	if p.hole {
		return 0
	}
	return p.n
}

// pieces divides a file.
type pieces struct {
	size  uint64
	chunk uint64
	holes vfs.HoleSeeker // nil: all is data
	cuts  Piecer         // nil: all is cut into chunks

	off  uint64 // what comes next
	data uint64 // the data that is known ends here
}

// seek has f's holes asked for if a says that there are some, and f can tell.
func (p *pieces) seek(f vfs.File, a *vfs.Attr) {
	if !sparse(a) {
		return
	}
	if hs, ok := vfs.As[vfs.HoleSeeker](f); ok {
		p.holes = hs
	}
}

// next returns the next piece; one of no bytes is the end. Holes are returned
// only if they are wanted, else passed over.
func (p *pieces) next(ctx context.Context, wantHoles bool) (piece, error) {
	if p.holes != nil && p.off >= p.data && p.off < p.size {
		hole, err := p.look(ctx)
		if err != nil {
			return piece{}, err
		}
		if hole.n > 0 {
			p.off += hole.n
			if wantHoles {
				return hole, nil
			}
		}
	}
	end := p.size
	if p.holes != nil && p.data < end {
		end = p.data
	}
	if p.off >= end {
		return piece{}, nil
	}
	n, err := cut(ctx, p.cuts, p.off, p.chunk)
	if err != nil {
		return piece{}, err
	}
	at := piece{off: p.off, n: min(n, end-p.off)}
	p.off += at.n
	return at, nil
}

// cut is how many bytes are read at off: those of a whole piece, or else of a chunk.
func cut(ctx context.Context, cuts Piecer, off, chunk uint64) (uint64, error) {
	if cuts == nil {
		return chunk, nil
	}
	end, err := cuts.PieceEnd(ctx, off)
	if err != nil {
		return 0, fmt.Errorf("find the end of the piece at %d: %w", off, err)
	}
	if end <= off || end-off > maxPiece {
		return chunk, nil
	}
	return end - off, nil
}

// cutsOf is the power of the first of the files that has it. What is to be read at a certain rate is not read in pieces.
func (o *Options) cutsOf(files ...vfs.File) Piecer {
	if o.Throttle.Rate() > 0 {
		return nil
	}
	for _, f := range files {
		if c, ok := vfs.As[Piecer](f); ok {
			return c
		}
	}
	return nil
}

// look finds the data behind p.off, and returns the hole before it.
func (p *pieces) look(ctx context.Context) (hole piece, err error) {
	start, err := p.holes.NextData(ctx, p.off)
	switch {
	case errors.Is(err, io.EOF):
		p.data = p.size
		return piece{off: p.off, n: p.size - p.off, hole: true}, nil
	case errors.Is(err, vfs.ErrNotSupp):
		p.holes = nil
		return piece{}, nil
	case err != nil:
		return piece{}, fmt.Errorf("find data: %w", err)
	case start < p.off:
		return piece{}, fmt.Errorf("find data: %w", ErrCount)
	case start >= p.size:
		p.data = p.size
		return piece{off: p.off, n: p.size - p.off, hole: true}, nil
	}
	end, err := p.holes.NextHole(ctx, start)
	if err != nil {
		return piece{}, fmt.Errorf("find a hole: %w", err)
	}
	if end <= start {
		return piece{}, fmt.Errorf("find a hole: %w", ErrCount)
	}
	p.data = min(end, p.size)
	return piece{off: p.off, n: start - p.off, hole: true}, nil
}
