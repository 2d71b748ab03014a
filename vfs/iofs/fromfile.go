package iofs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// maxHeld bounds the memory, in bytes, of files that can neither seek nor be read at an
	// offset. A larger file is ErrFBig. At the bound the one goes that was not used for the
	// longest time; if all are being read in, it is ErrBusy.
	maxHeld = 64 << 20
	// heldCost is what a file in memory takes beside its bytes.
	heldCost = 512
	// maxEmpty bounds the reads in sequence that may give nothing: then it is ErrNoProgress.
	maxEmpty = 100
)

func (f *from) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	o, err := vfs.Readable(ctx, f, at, how)
	if err == nil && !f.may(&o.Attr, mayRead) {
		err = vfs.ErrAccess
	}
	var p string
	if err == nil {
		p, err = f.path(ctx, o.H)
	}
	if err != nil {
		return nil, vfs.Opened{}, err
	}
	r, a, err := f.open(ctx, p)
	if err != nil {
		return nil, vfs.Opened{}, err
	}
	o.Attr = a
	return vfs.ReaderFile(r, a), o, nil
}

// open is a file as a reader, which may be a closer, and the attributes of what was opened.
func (s *source) open(ctx context.Context, p string) (r io.ReaderAt, a vfs.Attr, err error) {
	file, err := s.fsys.Open(p)
	if errors.Is(err, fs.ErrNotExist) {
		err = vfs.ErrStale
	}
	if err != nil {
		return nil, a, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = vfs.ErrStale // it has been replaced
	}
	if err == nil {
		a, err = s.attr(p, info)
	}
	if err != nil {
		return nil, a, errors.Join(err, file.Close())
	}
	switch x := file.(type) {
	case io.ReaderAt:
		return &closing{x, file}, a, nil
	case io.ReadSeeker:
		return &closing{&seeking{r: x}, file}, a, nil
	}
	data, err := s.held.get(ctx, version{p, a.Size, a.Change}, file)
	return bytes.NewReader(data), a, errors.Join(err, file.Close())
}

// closing is a reader together with what it belongs to.
type closing struct {
	io.ReaderAt
	io.Closer
}

// seeking reads at offsets by seeking, one call at a time.
type seeking struct {
	mu sync.Mutex
	r  io.ReadSeeker
}

func (s *seeking) ReadAt(p []byte, off int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.r.Seek(off, io.SeekStart); err != nil {
		return 0, err
	}
	return readFull(s.r, p)
}

// readFull reads until p is full, and returns io.EOF if there is less.
func readFull(r io.Reader, p []byte) (n int, err error) {
	for empty := 0; n < len(p) && err == nil; {
		var m int
		m, err = r.Read(p[n:])
		if m < 0 || m > len(p)-n {
			return n, fmt.Errorf("a reader answered %d to a read of %d bytes: %w", m, len(p)-n, vfs.ErrServerFault)
		}
		n += m
		if empty++; m > 0 {
			empty = 0
		}
		if empty == maxEmpty && err == nil {
			err = io.ErrNoProgress
		}
	}
	if n == len(p) {
		err = nil
	}
	return n, err
}

// version is a file as it was at one time.
type version struct {
	path         string
	size, change uint64
}

// held are files in memory.
type held struct {
	mu    sync.Mutex
	files map[version]*whole
	bytes uint64 // of files, heldCost included
	uses  uint64
}

// whole is a file that is in memory, or is being read in. data and err are set before ready
// is closed.
type whole struct {
	ready chan struct{}
	data  []byte
	err   error
	in    bool   // guarded by held.mu: ready is closed
	used  uint64 // guarded by held.mu: when, of held.uses
}

// get returns the bytes of v, and reads them from r if they are not there. A read that has
// begun is finished, whatever becomes of ctx.
func (h *held) get(ctx context.Context, v version, r io.Reader) ([]byte, error) {
	w, mine, err := h.enter(v)
	if err != nil {
		return nil, err
	}
	if mine {
		w.data, w.err = readIn(v, r)
		h.entered(v, w)
	}
	select {
	case <-w.ready:
		return w.data, w.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// enter finds v, or makes room for it: then the caller reads it in.
func (h *held) enter(v version) (w *whole, mine bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.uses++
	if w := h.files[v]; w != nil {
		w.used = h.uses
		return w, false, nil
	}
	if v.size > maxHeld-heldCost {
		return nil, false, fmt.Errorf("%s: %d bytes, and the file cannot seek: %w", v.path, v.size, vfs.ErrFBig)
	}
	for h.bytes+v.size+heldCost > maxHeld {
		if !h.dropOldest() {
			return nil, false, vfs.ErrBusy
		}
	}
	w = &whole{ready: make(chan struct{}), used: h.uses}
	h.files[v] = w
	h.bytes += v.size + heldCost
	return w, true, nil
}

// dropOldest takes out the file that was not used for the longest time. The caller holds mu.
func (h *held) dropOldest() bool {
	var oldest version
	var found *whole
	for v, w := range h.files {
		if w.in && (found == nil || w.used < found.used) {
			oldest, found = v, w
		}
	}
	if found != nil {
		h.drop(oldest)
	}
	return found != nil
}

func (h *held) drop(v version) {
	delete(h.files, v)
	h.bytes -= v.size + heldCost
}

// entered says that w has been read in. What failed is not kept.
func (h *held) entered(v version, w *whole) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.in = true
	if w.err != nil {
		h.drop(v)
	}
	close(w.ready)
}

// readIn reads all of a file, and one byte more: archives check their sums at the end.
func readIn(v version, r io.Reader) ([]byte, error) {
	data := make([]byte, v.size)
	n, err := readFull(r, data)
	if err == nil {
		_, err = readFull(r, make([]byte, 1))
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return data[:n], err
}
