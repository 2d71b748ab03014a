package lines

import (
	"bytes"
	"io"
)

const (
	// blockSize is how much is read at once, in bytes. A NUL in a block makes what follows binary, so that this is
	// also what is looked at to tell. It is that of GNU grep.
	blockSize = 96 << 10

	// MaxLine is the longest line that is searched, if Search does not say: in bytes. A longer one is left out
	// as neither matching nor not, and counted. A bound of less than a block is that of a block.
	MaxLine = 16 << 20

	// keepBuffer is how large a buffer a Searcher keeps from one stream to the next.
	keepBuffer = 1 << 20
)

// Search says what is looked for in a stream, and what is shown of it.
type Search struct {
	Invert        bool   // lines that do not match are selected
	Limit         bool   // stop after Max selected lines, and the lines after the last
	Max           uint64 // see Limit
	Before, After int    // lines to show beside selected ones; those before as far as they have room in MaxLine
	First         bool   // stop at the first selected line, and show nothing
	Quiet         bool   // show nothing, and count
	Text          bool   // a NUL is a byte as any other
	Skip          bool   // stop at the first NUL, with nothing selected
	MaxLine       int    // 0: MaxLine
	// MaxMatch is the longest line that the expression is asked about, in bytes; 0: any. A longer one for which it
	// would have to be is left out, as one is beyond MaxLine. It is still shown beside others.
	MaxMatch int
}

// Line is a line that is shown. Its text is valid during the call.
type Line struct {
	Number  uint64 // from 1
	Offset  uint64 // of its first byte
	Text    []byte // without the newline
	Context bool   // it is beside a selected one
	Gap     bool   // the line before it was not shown, but an earlier one was
}

// Result is what was found in a stream.
type Result struct {
	Selected uint64 // lines
	Bytes    uint64 // that were searched, with those of holes
	Behind   uint64 // where the line that was selected last ends, with its newline: an offset
	Binary   bool   // it has a NUL, where that matters: lines from then on are not shown
	// BinarySelected: a line was selected that is not shown therefore.
	BinarySelected bool
	TooLong        uint64 // lines that were left out
	FirstTooLong   uint64 // the number of the first of them
}

// Searcher searches one stream after the other, for one pattern. It is for one goroutine.
type Searcher struct {
	s    Search
	find finder
	show func(*Line) error

	buf       []byte
	end       int    // of what was read
	fresh     int    // where the last block begins
	at        int    // where the first line begins that was not looked at
	shown     int    // where the last line that was shown ends; -1: before buf
	base      uint64 // the offset of buf[0]
	number    uint64 // of lines before at
	zeros     uint64 // how many of the stream's bytes that come next are zeros, and were not read
	after     int    // lines that are to be shown as context
	full      bool   // Max lines were selected
	leavesOut bool   // within a line that is too long
	eof       bool
	any       bool // something was shown
	r         Result
}

// NewSearcher returns a Searcher for p. match, if not nil, is asked instead of p's expression whether
// a line matches.
func NewSearcher(p *Pattern, s Search, match func(line []byte) bool) *Searcher {
	if s.MaxLine == 0 {
		s.MaxLine = MaxLine
	}
	s.MaxLine = max(s.MaxLine, blockSize)
	return &Searcher{s: s, find: finder{p: p, match: match, most: s.MaxMatch}}
}

// Search searches a stream from its beginning, and calls show with each line to be shown, in order. An error of
// show ends it. After an error of r what has come before it counts. If r is a [HoleReader] its holes are not read.
func (s *Searcher) Search(r io.Reader, show func(*Line) error) (Result, error) {
	if cap(s.buf) > keepBuffer {
		s.buf = nil
	}
	*s = Searcher{s: s.s, find: s.find, show: show, buf: s.buf[:cap(s.buf)]}
	for !s.done() && (!s.eof || s.zeros > 0) {
		if s.zeros > 0 && s.skip() {
			continue
		}
		err := s.read(r)
		if lerr := s.lines(err == nil && s.eof && s.zeros == 0); lerr != nil {
			return s.r, lerr
		}
		if err != nil {
			return s.r, err
		}
	}
	return s.r, nil
}

// done reports whether nothing more can be found.
func (s *Searcher) done() bool {
	switch {
	case s.r.Selected > 0 && s.s.First, s.r.Binary && s.s.Skip, s.r.BinarySelected && !s.s.Quiet:
		return true
	case s.s.Limit && s.r.Selected >= s.s.Max:
		return s.after == 0
	}
	return false
}

// read appends a block.
func (s *Searcher) read(r io.Reader) error {
	s.makeRoom()
	n, err := s.block(r, s.buf[s.end:s.end+blockSize])
	block := s.buf[s.end : s.end+n]
	s.fresh = s.end
	s.r.Bytes += uint64(n)
	s.end += n
	if !s.r.Binary && !s.s.Text && bytes.IndexByte(block, 0) >= 0 {
		s.r.Binary = true
		if s.s.Skip {
			s.r.Selected = 0
		}
	}
	if s.r.Binary {
		// As for GNU grep, it ends a line.
		for i := bytes.IndexByte(block, 0); i >= 0; i = bytes.IndexByte(block, 0) {
			block[i] = '\n'
			block = block[i+1:]
		}
	}
	if s.leavesOut {
		s.leaveOut()
	}
	s.bound()
	return err
}

// emptyReads is how many reads in a row may bring nothing: more is io.ErrNoProgress.
const emptyReads = 100

func readSome(r io.Reader, p []byte) (n int, err error) {
	for range emptyReads {
		if n, err = r.Read(p); n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

// makeRoom drops what is no longer needed, and has room for a block.
func (s *Searcher) makeRoom() {
	keep := s.linesBefore(s.at)
	copy(s.buf, s.buf[keep:s.end])
	s.base += uint64(keep)
	s.at -= keep
	s.end -= keep
	s.shown = max(s.shown-keep, -1)
	if len(s.buf) < s.end+blockSize {
		to := make([]byte, max(2*len(s.buf), s.end+blockSize))
		copy(to, s.buf[:s.end])
		s.buf = to
	}
}

// linesBefore is where the lines begin that may be shown before the one at start.
func (s *Searcher) linesBefore(start int) int {
	lowest := max(s.shown, start-s.s.MaxLine, 0)
	from := start
	for range s.s.Before {
		if from <= lowest {
			break
		}
		before := lowest + bytes.LastIndexByte(s.buf[lowest:from-1], '\n') + 1
		if before == lowest && lowest > max(s.shown, 0) {
			break // it need not be whole
		}
		from = before
	}
	return from
}

// leaveOut drops what belongs to a line that is too long.
func (s *Searcher) leaveOut() {
	i := bytes.IndexByte(s.buf[s.at:s.end], '\n')
	if i < 0 {
		s.drop(s.end)
		return
	}
	s.drop(s.at + i + 1)
	s.leavesOut = false
	s.number++
}

// drop forgets what stands before buf[n].
func (s *Searcher) drop(n int) {
	copy(s.buf, s.buf[n:s.end])
	s.base += uint64(n)
	s.at, s.end, s.fresh, s.shown = 0, s.end-n, 0, -1
}

// lines looks at all lines that are whole; at the end of the stream also at what no newline ends.
func (s *Searcher) lines(last bool) error {
	if s.leavesOut {
		return nil
	}
	end := s.end
	if !last {
		from := max(s.fresh, s.at)
		end = from + bytes.LastIndexByte(s.buf[from:s.end], '\n') + 1
		if end == from {
			return nil
		}
	}
	first := s.at
	s.find.begin(s.buf[first:end])
	for s.at < end && !s.done() {
		from, to := end, end
		if !s.full {
			from, to = s.find.next(s.at - first)
			from, to = first+from, first+to
		}
		if err := s.others(from); err != nil {
			return err
		}
		if from < end && !s.done() {
			selected := !s.s.Invert
			if s.find.long {
				s.tooLong()
				selected = false
			}
			if err := s.take(to, selected); err != nil {
				return err
			}
		}
	}
	return nil
}

// bound leaves the first line out if it is longer than MaxLine. No other one is: it begins within the last block.
func (s *Searcher) bound() {
	if s.leavesOut || s.end-s.at <= s.s.MaxLine {
		return
	}
	from := max(s.fresh, s.at)
	if i := bytes.IndexByte(s.buf[from:s.end], '\n'); i >= 0 && from+i-s.at <= s.s.MaxLine {
		return
	}
	s.tooLong()
	s.leavesOut = true
	s.leaveOut()
}

// tooLong counts the line behind those before at.
func (s *Searcher) tooLong() {
	if s.r.TooLong++; s.r.TooLong == 1 {
		s.r.FirstTooLong = s.number + 1
	}
}

// others passes the lines up to to, which do not match.
func (s *Searcher) others(to int) error {
	for s.at < to && !s.done() {
		selected := s.s.Invert && !s.full
		if !selected && s.after == 0 {
			s.number += uint64(bytes.Count(s.buf[s.at:to], []byte{'\n'}))
			s.at = to
			return nil
		}
		end := to
		if i := bytes.IndexByte(s.buf[s.at:to], '\n'); i >= 0 {
			end = s.at + i
		}
		if err := s.take(end, selected); err != nil {
			return err
		}
	}
	return nil
}

// take passes one line, which ends before end.
func (s *Searcher) take(end int, selected bool) error {
	start := s.at
	s.at = min(end+1, s.end)
	s.number++
	if !selected && s.after == 0 {
		return nil
	}
	if !selected {
		s.after--
		return s.tell(start, end, s.number, true)
	}
	s.r.Selected++
	s.r.Behind = s.base + uint64(s.at)
	s.r.BinarySelected = s.r.Binary
	s.full = s.s.Limit && s.r.Selected >= s.s.Max
	if s.s.First || s.s.Quiet || s.r.Binary {
		return nil
	}
	if err := s.before(start); err != nil {
		return err
	}
	s.after = s.s.After
	return s.tell(start, end, s.number, false)
}

// before shows the lines before a selected one.
func (s *Searcher) before(start int) error {
	at := s.linesBefore(start)
	number := s.number - uint64(bytes.Count(s.buf[at:start], []byte{'\n'}))
	for at < start {
		end := at + bytes.IndexByte(s.buf[at:start], '\n')
		if err := s.tell(at, end, number, true); err != nil {
			return err
		}
		number++
		at = end + 1
	}
	return nil
}

// tell shows the line from start to end.
func (s *Searcher) tell(start, end int, number uint64, context bool) error {
	l := Line{Number: number, Offset: s.base + uint64(start), Text: s.buf[start:end], Context: context, Gap: s.any && start != s.shown}
	s.any, s.shown = true, min(end+1, s.end)
	return s.show(&l)
}
