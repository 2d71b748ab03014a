package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

// readVerb reads a file: the one that the URL names, or one that it makes in the
// directory that the URL names.
var readVerb = verb{name: "read", size: DefaultSize, count: 4096, start: startRead}

// readWork is a file and where in it the next operation reads.
type readWork struct {
	*mount
	scratch *scratch
	h       vfs.Handle
	blocks  uint64
	last    int           // size of an operation, if the file is smaller than one
	cursor  atomic.Uint64 // of all callers, in blocks
}

func startRead(ctx context.Context, o *Options) (work, error) {
	m, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	w := &readWork{mount: m, scratch: newScratch(m), h: m.target.Handle}
	if err := w.prepare(ctx); err != nil {
		return nil, errors.Join(err, cleanUp(ctx, w))
	}
	return w, nil
}

// cleanUp ends w although ctx may have ended.
func cleanUp(ctx context.Context, w work) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	return w.end(ctx)
}

func (w *readWork) prepare(ctx context.Context) error {
	size := w.target.Attr.Size
	switch w.target.Attr.Type {
	case vfs.TypeReg:
		if size == 0 {
			return usage("%s is empty: there is nothing to read", w.o.URL)
		}
	case vfs.TypeDir:
		size = uint64(w.o.fileSize(1))
		if err := w.fill(ctx, size); err != nil {
			return fmt.Errorf("make a file to read: %w", err)
		}
	default:
		return usage("%s is a %s: name a file, or a directory where a file can be made", w.o.URL, w.target.Attr.Type)
	}
	// A short block at the end would be an operation of another size.
	w.last = int(min(uint64(w.o.Size), size))
	w.blocks = size / uint64(w.last)
	return nil
}

func (w *readWork) fill(ctx context.Context, size uint64) (err error) {
	f, h, err := w.scratch.create(ctx)
	if err != nil {
		return err
	}
	w.h = h
	defer func() { err = errors.Join(err, f.Close(context.WithoutCancel(ctx))) }()
	data := noise(int(min(DefaultSize, size)), w.o.Seed)
	var first vfs.Written
	for off := uint64(0); off < size; {
		var one vfs.Written
		n, err := vfs.WriteFull(ctx, f, data[:min(uint64(len(data)), size-off)], off, vfs.Unstable, &one)
		if err != nil {
			return err
		}
		if off == 0 {
			first = one
		}
		if first.Verf != one.Verf {
			return errVerifier
		}
		off += uint64(n)
	}
	var done vfs.Written
	if err := f.Commit(ctx, 0, 0, &done); err != nil {
		return err
	}
	if done.Verf != first.Verf {
		return errVerifier
	}
	return nil
}

func (w *readWork) end(ctx context.Context) error {
	return errors.Join(w.scratch.remove(ctx), w.mount.end(ctx))
}

func (w *readWork) caller(ctx context.Context, i int) (caller, error) {
	f, _, err := w.fs.Open(ctx, vfs.At{H: w.h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return nil, err
	}
	return &readCaller{w: w, f: f, buf: make([]byte, w.last), places: rand.NewPCG(w.o.Seed, uint64(i))}, nil
}

type readCaller struct {
	w      *readWork
	f      vfs.File
	buf    []byte
	places *rand.PCG
}

// place is the next block to read. Callers that read one behind the other share
// their place, so that the server sees one stream whatever their number.
func (c *readCaller) place() uint64 {
	if c.w.o.Random {
		return c.places.Uint64() % c.w.blocks
	}
	return (c.w.cursor.Add(1) - 1) % c.w.blocks
}

func (c *readCaller) op(ctx context.Context) (moved, error) {
	n, _, err := vfs.ReadFull(ctx, c.f, c.buf, c.place()*uint64(len(c.buf)))
	if err == nil && n < len(c.buf) {
		err = errShort
	}
	return moved{bytes: uint64(n)}, err
}

func (c *readCaller) flush(context.Context) error     { return nil }
func (c *readCaller) close(ctx context.Context) error { return c.f.Close(ctx) }
