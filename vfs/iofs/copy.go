package iofs

import (
	"errors"
	"io"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

// copyBuffer is how much ReadFrom and WriteTo move at once, in bytes: as much as
// one READ or WRITE carries.
const copyBuffer = 1 << 20

// buffers is the pool of the buffers of ReadFrom and WriteTo.
type buffers struct{ pool sync.Pool }

func (b *buffers) get() *[copyBuffer]byte {
	if p, ok := b.pool.Get().(*[copyBuffer]byte); ok {
		return p
	}
	return new([copyBuffer]byte)
}

func (b *buffers) put(p *[copyBuffer]byte) { b.pool.Put(p) }

// WriteTo writes the file, from where the last Read or Write ended to its end, to
// w. io.Copy calls it.
func (o *File) WriteTo(w io.Writer) (total int64, err error) {
	buf := o.fs.buffers.get()
	defer o.fs.buffers.put(buf)
	for {
		n, err := o.next(buf[:])
		if n > 0 {
			m, werr := w.Write(buf[:n])
			total += int64(m)
			if werr == nil && m < n {
				werr = io.ErrShortWrite
			}
			if werr != nil {
				return total, werr
			}
		}
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// ReadFrom writes what r yields up to its end, in large pieces. io.Copy calls it.
func (o *File) ReadFrom(r io.Reader) (total int64, err error) {
	if err := o.use(vfs.ShareWrite); err != nil {
		return 0, o.fail("write", err)
	}
	buf := o.fs.buffers.get()
	defer o.fs.buffers.put(buf)
	for {
		n, err := fill(r, buf[:])
		m, werr := o.Write(buf[:n])
		total += int64(m)
		switch {
		case werr != nil:
			return total, werr
		case errors.Is(err, io.EOF):
			return total, nil
		case err != nil:
			return total, err
		}
	}
}

// maxEmptyReads bounds how often in a row a reader may return no bytes and no error.
// At the bound that is io.ErrNoProgress.
const maxEmptyReads = 100

// fill reads until p is full. Unlike io.ReadFull it does not report the end as
// io.ErrUnexpectedEOF, so that this stays the error of a reader that returns it.
func fill(r io.Reader, p []byte) (n int, err error) {
	for empty := 0; n < len(p) && err == nil; {
		var m int
		m, err = r.Read(p[n:])
		n += m
		if empty++; m > 0 {
			empty = 0
		} else if empty > maxEmptyReads && err == nil {
			err = io.ErrNoProgress
		}
	}
	return n, err
}
