package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

// Comparison is what Compare found.
type Comparison struct {
	Differ bool
	Offset uint64 // of the first byte that differs, or where one file ends early
	Bytes  uint64 // compared
}

// Compare reads the first size bytes of two files and compares them. What is a hole in
// both, as both can tell ([vfs.HoleSeeker]), is the same and is not read; the last byte
// always is. Of o it uses Pool, Chunk, Window, Budget and Moved.
func Compare(ctx context.Context, a, b Source, size uint64, o *Options) (cmp Comparison, err error) {
	if size == 0 {
		return cmp, nil
	}
	how := &vfs.OpenHow{Access: vfs.ShareRead}
	fa, _, err := a.FS.Open(ctx, vfs.At{H: a.Handle, Label: a.Name}, how)
	if err != nil {
		return cmp, fmt.Errorf("open the source: %w", err)
	}
	defer func() { err = closeAfter(ctx, fa, err) }()
	fb, _, err := b.FS.Open(ctx, vfs.At{H: b.Handle, Label: b.Name}, how)
	if err != nil {
		return cmp, fmt.Errorf("open the destination: %w", err)
	}
	defer func() { err = closeAfter(ctx, fb, err) }()
	c := comparer{a: fa, b: fb, o: o, size: size, stop: size, settling: make(chan struct{}, 1)}
	c.seekA, _ = vfs.As[vfs.HoleSeeker](fa)
	c.seekB, _ = vfs.As[vfs.HoleSeeker](fb)
	c.cuts = o.cutsOf(fa, fb)
	err = c.run(ctx)
	return Comparison{Differ: c.differ, Offset: c.at, Bytes: c.done}, err
}

// closeAfter closes f and returns err, or the close's error if there is none.
func closeAfter(ctx context.Context, f vfs.File, err error) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	if cerr := f.Close(ctx); err == nil && cerr != nil {
		return fmt.Errorf("close: %w", cerr)
	}
	return err
}

// comparer compares two files, chunk by chunk.
type comparer struct {
	a, b    vfs.File
	o       *Options
	workers *workers // nil if there is but one chunk
	size    uint64
	// Both tell where their files have data, or one does not.
	seekA, seekB vfs.HoleSeeker
	cuts         Piecer // nil: all is cut into chunks

	settling chan struct{} // full while a chunk is settled, and slots are taken for it

	mu     sync.Mutex
	next   uint64
	stop   uint64 // chunks from here on are not looked at
	differ bool
	at     uint64
	done   uint64
	err    error
}

// run compares with as many workers as there are chunks in the window. Chunks
// before the first difference are always compared, so that what is reported is
// the first.
func (c *comparer) run(ctx context.Context) error {
	chunks := (c.stop-1)/c.o.chunk() + 1
	if chunks == 1 {
		c.work(ctx)
		return c.err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.workers = &workers{o: c.o, chunks: chunks, work: func() {
		if !c.work(ctx) {
			cancel()
		}
	}}
	c.workers.run()
	return c.err
}

// work compares chunks until there are none. It is false after an error.
func (c *comparer) work(ctx context.Context) bool {
	for {
		more, err := c.step(ctx)
		if err != nil {
			c.mu.Lock()
			if c.err == nil {
				c.err = err
			}
			c.mu.Unlock()
			return false
		}
		if !more {
			return true
		}
	}
}

// step compares one chunk, if there is one.
func (c *comparer) step(ctx context.Context) (more bool, err error) {
	off, n, err := c.settle(ctx)
	if err != nil || n == 0 {
		return false, err
	}
	defer c.o.Budget.release(n)
	if err := c.chunk(ctx, off, int(n)); err != nil {
		return false, err
	}
	c.workers.moved(c.a, c.b)
	return true, nil
}

// settle says what is compared next, and takes slots for it.
func (c *comparer) settle(ctx context.Context) (off, n uint64, err error) {
	select {
	case c.settling <- struct{}{}:
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	defer func() { <-c.settling }()
	c.mu.Lock()
	skipped, err := c.skip(ctx)
	if err == nil {
		off = c.next
		n, err = cut(ctx, c.cuts, off, c.o.paced())
	}
	if err != nil {
		c.mu.Unlock()
		return 0, 0, err
	}
	n = min(n, c.stop-min(off, c.stop))
	c.next += n
	c.mu.Unlock()
	c.o.moved(int64(skipped))
	if n > 0 {
		err = c.o.Budget.acquire(ctx, n)
	}
	return off, n, err
}

// skip passes over what is a hole in both files, and returns its length. The last byte
// is left: it tells whether both files are as long as they should be.
func (c *comparer) skip(ctx context.Context) (uint64, error) {
	if c.seekA == nil || c.seekB == nil || c.next >= c.stop {
		return 0, nil
	}
	data := c.size - 1
	for _, s := range [...]vfs.HoleSeeker{c.seekA, c.seekB} {
		at, err := s.NextData(ctx, c.next)
		switch {
		case errors.Is(err, io.EOF):
		case errors.Is(err, vfs.ErrNotSupp):
			c.seekA = nil
			return 0, nil
		case err != nil:
			return 0, fmt.Errorf("look for holes at %d: %w", c.next, err)
		default:
			data = min(data, at)
		}
	}
	if data <= c.next {
		return 0, nil
	}
	n := data - c.next
	c.next = data
	c.done += n
	return n, nil
}

// chunk compares n bytes at off.
func (c *comparer) chunk(ctx context.Context, off uint64, n int) error {
	bufA, bufB := c.o.Pool.Get(n), c.o.Pool.Get(n)
	defer bufA.Release()
	defer bufB.Release()
	na, err := c.o.read(ctx, c.a, bufA.B, off, nil)
	if err != nil {
		return fmt.Errorf("read the source at %d: %w", off, err)
	}
	nb, err := readFull(ctx, c.b, bufB.B, off, nil)
	if err != nil {
		return fmt.Errorf("read the destination at %d: %w", off, err)
	}
	same := min(na, nb)
	if !bytes.Equal(bufA.B[:same], bufB.B[:same]) {
		same = firstDifference(bufA.B[:same], bufB.B[:same])
	}
	c.o.moved(int64(same))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done += uint64(same)
	if same < n && (!c.differ || off+uint64(same) < c.at) {
		c.differ, c.at, c.stop = true, off+uint64(same), min(c.stop, off)
	}
	return nil
}

// firstDifference is the index of the first byte in which a and b, equally long,
// differ.
func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}
