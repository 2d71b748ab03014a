package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nfsbox/nfsbox/vfs"
)

// piece is a part of a file: at most a chunk of data, or a hole of any length.
type piece struct {
	off, n uint64
	hole   bool
}

// pieces divides a file.
type pieces struct {
	size  uint64
	chunk uint64
	holes vfs.HoleSeeker // nil: all is data

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
	at := piece{off: p.off, n: min(p.chunk, end-p.off)}
	p.off += at.n
	return at, nil
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
