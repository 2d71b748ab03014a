package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nfsbox/nfsbox/internal/base/throttle"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// readSize is how many bytes are read at once where zeros are looked for.
	readSize = 1 << 20
	// zeroBlock is the size and alignment, in bytes, of what counts as a hole if it is zeros: the block of
	// most file systems.
	zeroBlock = 4 << 10
)

// stream reads the data of a file, up to a size, and notes its holes.
type stream struct {
	ctx   context.Context
	f     vfs.File
	size  uint64         // as far as it is read
	seek  vfs.HoleSeeker // tells of holes; nil: nothing does
	zeros bool           // blocks of zeros count as holes

	throttle *throttle.Throttle

	end   uint64 // all before it was read, or is a hole
	known uint64 // there is no hole from end up to here
	buf   []byte // data that was read, and not returned; it ends at end
	block []byte // what buf is in
	holes []snapshot.Extent
	err   error // of the file, but for io.EOF
}

// all returns the holes of the file.
func (s *stream) all() []snapshot.Extent { return s.holes }

// Read implements io.Reader.
func (s *stream) Read(p []byte) (n int, err error) {
	for len(p) > 0 && n == 0 && err == nil {
		n, err = s.some(p)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// some reads some data, or passes a hole.
func (s *stream) some(p []byte) (n int, err error) {
	switch {
	case len(s.buf) > 0:
		return s.buffered(p), nil
	case s.end >= s.size:
		return 0, io.EOF
	case s.seek != nil && s.end >= s.known:
		return 0, s.look()
	case s.zeros:
		return 0, s.fill()
	}
	most := s.size - s.end
	if s.seek != nil {
		most = min(most, s.known-s.end)
	}
	p = p[:s.throttle.Part(int(min(uint64(len(p)), most)))]
	if err := s.throttle.Take(s.ctx, len(p)); err != nil {
		return 0, err
	}
	n, eof, err := s.f.ReadAt(s.ctx, p, s.end, nil)
	return n, s.moved(uint64(n), eof, err)
}

// moved goes on behind n bytes. At the end of the file, which may have become shorter, the size is what there was.
func (s *stream) moved(n uint64, eof bool, err error) error {
	if err != nil {
		return fmt.Errorf("read at %d: %w", s.end+n, err)
	}
	s.end += n
	if eof {
		s.size = s.end
	} else if n == 0 {
		return fmt.Errorf("read at %d: %w", s.end, io.ErrNoProgress)
	}
	return nil
}

// look finds the next data, and notes the hole before it.
func (s *stream) look() error {
	start, err := s.seek.NextData(s.ctx, s.end)
	switch {
	case errors.Is(err, vfs.ErrNotSupp):
		s.seek = nil
		return nil
	case errors.Is(err, io.EOF), err == nil && start > s.size:
		start = s.size
	case err != nil:
		return fmt.Errorf("find data: %w", err)
	case start < s.end:
		return fmt.Errorf("find data at %d: %w", s.end, io.ErrNoProgress)
	}
	if len(s.holes) >= snapshot.MaxHoles-1 && start < s.size {
		s.seek = nil // the rest is read, zeros and all
		return nil
	}
	s.hole(start - s.end)
	if s.end == s.size {
		return nil
	}
	if s.known, err = s.seek.NextHole(s.ctx, s.end); err != nil {
		return fmt.Errorf("find a hole: %w", err)
	}
	if s.known <= s.end {
		return fmt.Errorf("find a hole at %d: %w", s.end, io.ErrNoProgress)
	}
	return nil
}

// hole passes a hole, which may go on with the one before it.
func (s *stream) hole(n uint64) {
	if n == 0 {
		return
	}
	if i := len(s.holes) - 1; i >= 0 && s.holes[i].Off+s.holes[i].Len == int64(s.end) {
		s.holes[i].Len += int64(n)
	} else {
		s.holes = append(s.holes, snapshot.Extent{Off: int64(s.end), Len: int64(n)})
	}
	s.end += n
}

// fill reads the next bytes, which may begin with zeros, into the buffer.
func (s *stream) fill() error {
	if s.block == nil {
		s.block = make([]byte, readSize)
	}
	at := s.end
	part := s.throttle.Part(int(min(readSize, s.size-at)))
	if err := s.throttle.Take(s.ctx, part); err != nil {
		return err
	}
	n, eof, err := vfs.ReadFull(s.ctx, s.f, s.block[:part], at)
	if err := s.moved(uint64(n), eof, err); err != nil {
		return err
	}
	s.buf = s.block[:n]
	return nil
}

var zeroes [zeroBlock]byte

// buffered returns data of the buffer, up to the next block of zeros, or passes such blocks.
func (s *stream) buffered(p []byte) (n int) {
	at := s.end - uint64(len(s.buf)) // of the buffer in the file
	if at%zeroBlock == 0 && len(s.holes) < snapshot.MaxHoles-1 {
		for len(s.buf) > 0 {
			b := s.buf[:min(zeroBlock, len(s.buf))]
			if !bytes.Equal(b, zeroes[:len(b)]) {
				break
			}
			end := s.end
			s.end = at
			s.hole(uint64(len(b)))
			at, s.end, s.buf = s.end, end, s.buf[len(b):]
		}
	}
	n = copy(p, s.buf[:min(len(s.buf), int(zeroBlock-at%zeroBlock))])
	s.buf = s.buf[n:]
	return n
}
