package layout

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// maxEmptyReads is how often in a row a reader may return no bytes and no error.
// Then it is io.ErrNoProgress.
const maxEmptyReads = 100

// Fill hands all that r returns to write, in order and in pieces of len(b)-TrailerSize bytes at
// most, and the trailer with the last one. What o announces is compared before that one. More than
// maxSize bytes are object.ErrTooLarge. Nothing keeps what write gets. Info's ModTime is not set.
func Fill(ctx context.Context, key string, r io.Reader, o *object.PutOptions, maxSize int64, b []byte,
	write func(p []byte, off int64) error) (object.Info, error) {
	var t Trailer
	hash := sha256.New()
	for end := false; !end; {
		if err := ctx.Err(); err != nil {
			return object.Info{}, err
		}
		n, err := readChunk(r, b[:len(b)-TrailerSize])
		if err != nil && err != io.EOF { //nolint:errorlint // io.Reader's end is io.EOF itself
			return object.Info{}, err
		}
		end = err != nil
		p, off := b[:n], t.Size
		t.Size += int64(n)
		switch {
		case t.Size > maxSize:
			return object.Info{}, object.ErrTooLarge
		case o.Size >= 0 && t.Size > o.Size:
			return object.Info{}, fmt.Errorf("%w: more than %d bytes came", object.ErrMismatch, o.Size)
		}
		hash.Write(p)
		t.CRC = CRC(t.CRC, p)
		if end {
			hash.Sum(t.Sum[:0])
			if err := o.Check(t.Size, t.Sum); err != nil {
				return object.Info{}, err
			}
			p = t.Append(p, key)
		}
		if err := write(p, off); err != nil {
			return object.Info{}, err
		}
	}
	return object.Info{Key: key, Size: t.Size, Sum: t.Sum}, nil
}

// readChunk fills p from r. Its error is io.EOF if r has ended.
func readChunk(r io.Reader, p []byte) (n int, err error) {
	for empty := 0; n < len(p) && err == nil; {
		var m int
		m, err = r.Read(p[n:])
		if m < 0 || m > len(p)-n {
			return n, errors.New("the reader says that it has read more than it could")
		}
		n += m
		if m > 0 {
			empty = 0
		} else if empty++; err == nil && empty == maxEmptyReads {
			err = io.ErrNoProgress
		}
	}
	return n, err
}
