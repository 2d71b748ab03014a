package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	chunkers "github.com/PlakarKorp/go-cdc-chunkers"
	_ "github.com/PlakarKorp/go-cdc-chunkers/chunkers/fastcdc" // registers cutAlgorithm
)

// cutAlgorithm is FastCDC (Xia and others, 2016) with masks for the sizes that are asked for.
const cutAlgorithm = "fastcdc-v1.0.0"

// cutBuffer is what a file that is cut takes: a piece, and a part of the next.
const cutBuffer = maxPiece + normalCut

// listPieces is how many pieces a list has at most: about a mebibyte of lines.
const listPieces = 8192

// Data stores the data of a file: all that r gives, which is about size bytes. holes, if it is not nil, is called
// when r has ended, and returns the holes of the file, in order, which r has left out: [MaxHoles] at most. n is
// how many bytes r gave. r is read on the calling goroutine.
//
// Up to smallFile bytes go into a pack, up to wholeFile into an object, and more is cut by content.
func (w *Writer) Data(ctx context.Context, r io.Reader, size int64, holes func() []Extent) (c Content, n int64, err error) {
	r = &ctxReader{ctx, r}
	if size > wholeFile {
		n, err = w.cut(ctx, r, &c)
	} else {
		n, err = w.whole(ctx, r, size, &c)
	}
	if err == nil && holes != nil {
		err = w.sparse(ctx, holes(), &c)
	}
	return c, n, err
}

// whole stores a file that fits memory. If it has grown beyond wholeFile, the rest is cut.
func (w *Writer) whole(ctx context.Context, r io.Reader, size int64, c *Content) (int64, error) {
	b := make([]byte, max(size, 0)+1) // the byte more finds the end
	n, err := io.ReadFull(r, b)
	switch {
	case errors.Is(err, io.EOF):
		return 0, nil
	case errors.Is(err, io.ErrUnexpectedEOF):
	case err == nil:
		return w.cut(ctx, io.MultiReader(&bytesReader{b}, r), c)
	default:
		return int64(n), err
	}
	var p Piece
	if n <= smallFile {
		p, err = w.packs.add(ctx, b[:n])
	} else {
		p, err = w.sink.put(ctx, b[:n])
	}
	c.Pieces = []Piece{p}
	return int64(n), err
}

// cut stores a file in pieces that are cut by its content: so what is inserted changes few of them.
func (w *Writer) cut(ctx context.Context, r io.Reader, c *Content) (n int64, err error) {
	var buf []byte
	select {
	case buf = <-w.cuts:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if buf == nil {
		buf = make([]byte, cutBuffer)
	}
	defer func() { w.cuts <- buf }()
	o := chunkers.ChunkerOpts{MinSize: minCut, NormalSize: normalCut, MaxSize: maxPiece}
	cutter, err := chunkers.NewChunkerBuffer(cutAlgorithm, r, &o, buf)
	if err != nil {
		return 0, err
	}
	for end := false; !end; {
		b, err := cutter.Next()
		if end = errors.Is(err, io.EOF); err != nil && !end {
			return n, err
		}
		if len(b) == 0 {
			continue
		}
		p, err := w.sink.put(ctx, b)
		if err != nil {
			return n, err
		}
		n += int64(len(b))
		if c.Pieces = append(c.Pieces, p); len(c.Pieces) == listPieces {
			if err := w.list(ctx, c); err != nil {
				return n, err
			}
		}
	}
	if len(c.Pieces) > maxInline || len(c.Lists) > 0 && len(c.Pieces) > 0 {
		return n, w.list(ctx, c)
	}
	return n, nil
}

// list moves c's pieces to a list.
func (w *Writer) list(ctx context.Context, c *Content) (err error) {
	if len(c.Lists) == maxLists {
		return fmt.Errorf("%w: %d lists of pieces", ErrTooLong, maxLists)
	}
	var b []byte
	data := int64(0)
	for i := range c.Pieces {
		if b, err = appendLine(b, &c.Pieces[i]); err != nil {
			return err
		}
		data += c.Pieces[i].Size
	}
	p, err := w.sink.put(ctx, b)
	c.Lists = append(c.Lists, List{p, data})
	c.Pieces = nil
	return err
}

// sparse notes the holes of a file.
func (w *Writer) sparse(ctx context.Context, holes []Extent, c *Content) error {
	switch {
	case len(holes) <= maxInlineHoles:
		c.Holes = holes
		return nil
	case len(holes) > MaxHoles:
		return fmt.Errorf("%w: %d holes", ErrTooLong, len(holes))
	}
	b, err := json.Marshal(holes)
	if err != nil {
		return err
	}
	p, err := w.sink.put(ctx, b)
	c.Sparse = &p
	return err
}

// far moves what is long of x to an object of its own.
func (w *Writer) far(ctx context.Context, x *Extra) error {
	if x.empty() || x.Far != nil {
		return nil
	}
	b, err := json.Marshal(x)
	if err != nil || len(b) <= maxInlineExtra {
		return err
	}
	if len(b) > maxPlain {
		return fmt.Errorf("%w: %d bytes of lists and extended attributes", ErrTooLong, len(b))
	}
	p, err := w.sink.put(ctx, b)
	*x = Extra{Far: &p}
	return err
}

// ctxReader is a reader that ends with its context.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *ctxReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// bytesReader reads bytes, and lets go of them at their end.
type bytesReader struct{ b []byte }

func (r *bytesReader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		r.b = nil
		return 0, io.EOF
	}
	n := copy(p, r.b)
	r.b = r.b[n:]
	return n, nil
}
