package lines

import (
	"bytes"
	"errors"
	"io"
)

// HoleReader is a stream that may know of zeros without reading them: a file with holes.
type HoleReader interface {
	io.Reader
	// Hole passes over zeros that come next, and returns how many; 0 if it knows of none. It is asked behind a block
	// of zeros.
	Hole() uint64
}

// block fills p with what comes next of the stream. Blocks of zeros go to s.zeros.
func (s *Searcher) block(r io.Reader, p []byte) (int, error) {
	if s.zeros > 0 {
		n := int(min(s.zeros, uint64(len(p))))
		clear(p[:n])
		s.zeros -= uint64(n)
		return n, nil
	}
	n, err := readSome(r, p)
	if errors.Is(err, io.EOF) {
		s.eof, err = true, nil
	}
	if n == 0 || p[0] != 0 || err != nil || !zero(p[:n]) {
		return n, err
	}
	if holes, ok := r.(HoleReader); ok && !s.eof {
		s.zeros = holes.Hole()
	}
	if s.steady() {
		s.zeros += uint64(n)
		return 0, nil
	}
	return n, nil
}

// zero reports whether p, which is not empty, has zeros alone.
func zero(p []byte) bool { return p[0] == 0 && bytes.Equal(p[1:], p[:len(p)-1]) }

// steady reports whether further zeros are all alike: each is a line of its own, or all belong to one that is left out.
func (s *Searcher) steady() bool {
	if !s.r.Binary {
		return s.leavesOut
	}
	return !s.leavesOut && s.at == s.end && s.after == 0
}

// skip passes zeros without looking at each, and reports whether it could.
func (s *Searcher) skip() bool {
	if !s.steady() {
		return false
	}
	n := s.zeros
	if s.r.Binary {
		s.find.begin([]byte{'\n'})
		at, _ := s.find.next(0)
		if (at == 0) != s.s.Invert && !s.full {
			n = s.selectEmpty(n)
		}
		s.number += n
	}
	s.drop(s.end)
	s.base += n
	s.r.Bytes += n
	s.zeros -= n
	return true
}

// selectEmpty selects as many of n empty lines of a binary file as are asked for, and returns how many.
func (s *Searcher) selectEmpty(n uint64) uint64 {
	switch {
	case s.s.First || !s.s.Quiet:
		n = 1
	case s.s.Limit:
		n = min(n, s.s.Max-s.r.Selected)
	}
	s.r.Selected += n
	s.r.Behind = s.base + uint64(s.end) + n
	s.r.BinarySelected = true
	s.full = s.s.Limit && s.r.Selected >= s.s.Max
	return n
}
