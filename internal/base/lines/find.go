package lines

import (
	"bytes"
)

// finder finds lines that match in blocks of whole lines. It is for one goroutine.
type finder struct {
	p     *Pattern
	match func(line []byte) bool // nil: the Pattern's own
	most  int                    // the longest line that it is asked about; 0: any
	long  bool                   // the line that was found last is longer: whether it matches is not known
	text  []byte                 // the block
	low   []byte                 // the same in lower case, if the literal needs it
	wide  []byte                 // a line as the expression sees it
}

// begin takes a block up.
func (f *finder) begin(text []byte) {
	f.text = text
	if f.p.must.fold {
		f.low = appendLower(f.low[:0], text)
	}
}

// next finds the first line from at on that matches, or is too long to tell: text[start:end], without its newline. If there is none both
// are the end of the block. at is where a line begins.
func (f *finder) next(at int) (start, end int) {
	f.long = false
	for at < len(f.text) {
		start = f.candidate(at)
		if start < 0 {
			break
		}
		if end = bytes.IndexByte(f.text[start:], '\n'); end < 0 {
			end = len(f.text)
		} else {
			end += start
		}
		f.long = f.most > 0 && end-start > f.most && !f.p.sole
		if f.long || f.matches(start, end) {
			return start, end
		}
		at = end + 1
	}
	return len(f.text), len(f.text)
}

// candidate is the beginning of the first line from at on that has the literal; -1 if none has.
func (f *finder) candidate(at int) int {
	must, in := &f.p.must, f.text
	if len(must.text) == 0 {
		return at
	}
	if must.fold {
		in = f.low
	}
	i := bytes.Index(in[at:], must.text)
	if i < 0 {
		return -1
	}
	return at + bytes.LastIndexByte(in[at:at+i], '\n') + 1
}

// matches reports whether a line that has the literal matches.
func (f *finder) matches(start, end int) bool {
	line := f.text[start:end]
	switch {
	case f.p.sole:
		return true
	case f.match != nil:
		return f.match(line)
	case isASCII(line):
		return f.p.lines.Match(line)
	}
	f.wide = appendWide(f.wide[:0], line)
	return f.p.lines.Match(f.wide)
}
