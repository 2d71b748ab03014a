package filter

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
)

// blockSize is how much text of a List is allocated at once.
const blockSize = 1 << 20

// List is a list of paths: they are chosen, with all below them, and the directories on the way. It need not be sorted.
// Its memory is bounded by maxListed and maxListBytes. A List is used once, or by a Filter again after [Filter.Anew]: it remembers which of its paths were met.
type List struct {
	blocks [][]byte
	paths  []span // sorted by their parts
	met    []atomic.Uint32
}

// span is where the text of a path lies. Its parts are divided by NUL, which no name has, so that a
// directory's paths follow it at once.
type span struct {
	at     uint32 // block, and place in it
	length uint16
}

// ReadList reads paths, one a line, or with nul each ended by a NUL. They are relative; "." in them means nothing. An
// absolute path, or one with "..", is an error, which names the file and the line. name is the file's.
func ReadList(name string, r io.Reader, nul bool) (*List, error) {
	l, in, n, size := new(List), bufio.NewReaderSize(r, 2*maxListedPath), 0, 0
	end := byte('\n')
	if nul {
		end = 0
	}
	for {
		n++
		text, err := in.ReadSlice(end)
		if err != nil && !errors.Is(err, io.EOF) {
			if errors.Is(err, bufio.ErrBufferFull) {
				err = fmt.Errorf("the path has more than %d bytes", maxListedPath)
			}
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		if err == nil {
			text = text[:len(text)-1]
		}
		if len(text) > 0 {
			p, perr := parsePath(text)
			if size += len(p); perr == nil && size > maxListBytes {
				perr = fmt.Errorf("the list has more than %d bytes", maxListBytes)
			}
			if perr == nil && len(l.paths) == maxListed {
				perr = fmt.Errorf("the list has more than %d paths", maxListed)
			}
			if perr != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, n, perr)
			}
			l.add(p)
		}
		if err != nil {
			break
		}
	}
	slices.SortFunc(l.paths, func(a, b span) int { return bytes.Compare(l.text(a), l.text(b)) })
	l.paths = slices.CompactFunc(l.paths, func(a, b span) bool { return bytes.Equal(l.text(a), l.text(b)) })
	l.met = make([]atomic.Uint32, len(l.paths)/32+1)
	return l, nil
}

// parsePath returns the parts of a path, divided by NUL; none for ".". It may change text.
func parsePath(text []byte) ([]byte, error) {
	switch {
	case bytes.IndexByte(text, 0) >= 0:
		return nil, errors.New("the path has a NUL byte")
	case text[0] == '/':
		return nil, fmt.Errorf("%q is absolute: paths are relative to the place", text)
	case len(text) > maxListedPath:
		return nil, fmt.Errorf("the path has more than %d bytes", maxListedPath)
	}
	parts := text[:0]
	for part := range bytes.SplitSeq(text, []byte{'/'}) {
		switch string(part) {
		case "", ".":
			continue
		case "..":
			return nil, errors.New(`the path has a ".."`)
		}
		if len(parts) > 0 {
			parts = append(parts, 0)
		}
		parts = append(parts, part...)
	}
	return parts, nil
}

// add adds a path.
func (l *List) add(parts []byte) {
	if n := len(l.blocks); n == 0 || len(l.blocks[n-1])+len(parts) > blockSize {
		l.blocks = append(l.blocks, make([]byte, 0, blockSize))
	}
	last := len(l.blocks) - 1
	at := last*blockSize + len(l.blocks[last])
	l.blocks[last] = append(l.blocks[last], parts...)
	l.paths = append(l.paths, span{uint32(at), uint16(len(parts))})
}

func (l *List) text(s span) []byte {
	at := int(s.at % blockSize)
	return l.blocks[s.at/blockSize][at : at+int(s.length)]
}

// part is a part of the list: paths[from:to] lie in a directory, whose path has offset bytes, with the NUL behind it.
type part struct {
	from, to, offset int
	whole            bool // the directory was listed, or one that it is in: all in it is chosen
}

// all is the part of the top.
func (l *List) all() part {
	p := part{to: len(l.paths)}
	if p.to > 0 && l.paths[0].length == 0 { // "."
		l.mark(0)
		p.from, p.whole = 1, true
	}
	return p
}

// find says what the list has of a name in a directory: below is the part of what lies below it. at is the index of the
// path, or -1 if the list does not have it. named says that the list has the name itself, or paths below it.
func (l *List) find(in part, name []byte) (below part, at int, named bool) {
	at = -1
	rest := func(i int) []byte { return l.text(l.paths[i])[in.offset:] }
	n := in.to - in.from
	from := in.from + search(n, func(i int) int { return bytes.Compare(rest(in.from+i), name) })
	below = part{from: from, offset: in.offset + len(name) + 1, whole: in.whole}
	if from < in.to && bytes.Equal(rest(from), name) {
		at, named, below.whole = from, true, true
		below.from++
	}
	// Those below it follow: what is not below it differs in the name, or has more of it.
	below.to = below.from + search(in.to-below.from, func(i int) int {
		r := rest(below.from + i)
		if len(r) > len(name) && r[len(name)] == 0 && bytes.Equal(r[:len(name)], name) {
			return -1
		}
		return 1
	})
	return below, at, named || below.to > below.from
}

// search is the first of n for which compare is not negative.
func search(n int, compare func(int) int) int {
	low, high := 0, n
	for low < high {
		if mid := int(uint(low+high) >> 1); compare(mid) < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// mark notes that a path was met.
func (l *List) mark(i int) {
	if i >= 0 {
		l.met[i/32].Or(1 << (i % 32))
	}
}

// Missing yields the paths that were not met, sorted.
func (l *List) Missing() iter.Seq[string] {
	return func(yield func(string) bool) {
		if l == nil {
			return
		}
		for i, s := range l.paths {
			if l.met[i/32].Load()&(1<<(i%32)) == 0 && !yield(strings.ReplaceAll(string(l.text(s)), "\x00", "/")) {
				return
			}
		}
	}
}
