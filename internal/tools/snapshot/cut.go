package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	chunkers "github.com/PlakarKorp/go-cdc-chunkers"
	_ "github.com/PlakarKorp/go-cdc-chunkers/chunkers/fastcdc" // registers cutAlgorithm
)

// cutAlgorithm is FastCDC (Xia and others, 2016) with masks for the sizes that are asked for.
const cutAlgorithm = "fastcdc-v1.0.0"

// cutBuffer is what a file that is cut takes: a piece, and a part of the next.
const cutBuffer = maxPiece + normalCut

// listPieces is how many pieces a list has at most: about a mebibyte of lines.
const listPieces = 8192

// Source is a file whose data is to be stored.
type Source struct {
	Size int64 // about how many bytes R gives
	// R gives the data, without the holes. It is read on the calling goroutine.
	R io.Reader
	// Holes, if it is not nil, returns the holes that R has left out so far, in order: [MaxHoles] at most.
	Holes func() []Extent

	// Of, if it is not nil, is the entry of the file, and In the directory that it will be added to: so that checkpoints have
	// what was stored of a file that is cut.
	Of *Entry
	In *DirWriter
	// Begun, if it is not nil, is what a checkpoint has of the file (Entry.Of), as Reuse has made it: R goes on behind.
	Begun *Entry
	// Each, if it is not nil, is called after each piece of a file that is cut. An error ends it.
	Each func() error
}

// Data is Store of a file with nothing but data and holes.
func (w *Writer) Data(ctx context.Context, r io.Reader, size int64, holes func() []Extent) (Content, int64, error) {
	return w.Store(ctx, &Source{R: r, Size: size, Holes: holes})
}

// Store stores the data of a file: all that R gives. n is how many bytes that was.
//
// Up to smallFile bytes go into a pack, up to wholeFile into an object, and more is cut by content.
func (w *Writer) Store(ctx context.Context, s *Source) (c Content, n int64, err error) {
	r := &ctxReader{ctx, s.R}
	if s.Size > wholeFile || s.Begun != nil {
		n, err = w.cut(ctx, r, &c, s)
	} else {
		n, err = w.whole(ctx, r, &c, s)
	}
	if err == nil && s.Holes != nil {
		err = w.sparse(ctx, s.Holes(), &c)
	}
	return c, n, err
}

// whole stores a file that fits memory. If it has grown beyond wholeFile, the rest is cut.
func (w *Writer) whole(ctx context.Context, r io.Reader, c *Content, s *Source) (int64, error) {
	b := make([]byte, max(s.Size, 0)+1) // the byte more finds the end
	n, err := io.ReadFull(r, b)
	switch {
	case errors.Is(err, io.EOF):
		return 0, nil
	case errors.Is(err, io.ErrUnexpectedEOF):
	case err == nil:
		return w.cut(ctx, io.MultiReader(&bytesReader{b}, r), c, s)
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
func (w *Writer) cut(ctx context.Context, r io.Reader, c *Content, s *Source) (n int64, err error) {
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
	data := int64(0)
	if s.Begun != nil {
		c.Pieces, c.Lists = slices.Clone(s.Begun.Content.Pieces), slices.Clone(s.Begun.Content.Lists)
		data = c.data()
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
		if err := s.note(c, data+n); err != nil {
			return n, err
		}
	}
	if len(c.Pieces) > maxInline || len(c.Lists) > 0 && len(c.Pieces) > 0 {
		return n, w.list(ctx, c)
	}
	return n, nil
}

// note has checkpoints know that data bytes of a file are stored, and tells that a piece is.
func (s *Source) note(c *Content, data int64) error {
	if s.In != nil {
		e := *s.Of
		e.Content, e.Of = Content{Pieces: slices.Clip(c.Pieces), Lists: slices.Clip(c.Lists)}, e.Attr.Size
		end := data
		if s.Holes != nil {
			for _, h := range s.Holes() {
				if h.Off > end {
					break
				}
				e.Content.Holes = append(e.Content.Holes, h)
				end += h.Len
			}
		}
		if e.Attr.Size = uint64(end); e.Attr.Size <= e.Of && len(e.Content.Holes) <= maxInlineHoles {
			s.In.underway(&e)
		}
	}
	if s.Each == nil {
		return nil
	}
	return s.Each()
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
