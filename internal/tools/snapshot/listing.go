package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"sort"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// listing says where the lines of a directory are. Those of a small one are a range of a part, which it
// shares with others: a head, and a line for each entry. A large one has parts of its own, and an index of
// these: a head, and a line for each part.
type listing struct {
	Part  int64  `json:"part"`            // the number of the part
	Off   int64  `json:"off,omitempty"`   // where the range begins
	Len   int64  `json:"len,omitempty"`   // how long it is; 0: the directory has an index
	Index *Piece `json:"index,omitempty"` // an object with the index
}

func (l *listing) check() error {
	if l.Index != nil {
		return l.Index.checkOwn()
	}
	if l.Part < 0 || l.Part >= maxObjects || l.Off < 0 || l.Len <= 0 || l.Len > maxPlain || l.Off > maxPlain-l.Len {
		return fmt.Errorf("a list of %d bytes at %d of part %d", l.Len, l.Off, l.Part)
	}
	return nil
}

// head is the first line of a listing, or of an index.
type head struct {
	Dir  text `json:"dir"`            // the path of the directory in the snapshot; "" is the root
	Deep bool `json:"deep,omitempty"` // the path is longer than vfs.MaxPath, and left out
}

// partLine is a line of an index.
type partLine struct {
	First text  `json:"first"` // the first name in the part
	Part  int64 `json:"part"`  // its number
}

// decodeHead reads the first line of a listing.
func decodeHead(b []byte) (h head, err error) {
	if !bytes.HasPrefix(b, []byte(`{"dir":`)) {
		return h, errors.New("a list without a head")
	}
	if err := unmarshal(b, &h); err != nil {
		return h, err
	}
	if len(h.Dir) > vfs.MaxPath {
		return h, fmt.Errorf("a path of %d bytes", len(h.Dir))
	}
	return h, nil
}

// span is one of the pieces that a listing is made of: lines in the order of their names.
type span struct {
	first string // the first name; "": not known
	part  int64
	sum   object.Sum // of the part, to its writer
}

// decodeIndex reads the index of a large directory.
func decodeIndex(b []byte) (h head, spans []span, err error) {
	first := true
	for len(b) > 0 {
		var row []byte
		if row, b, err = cutLine(b); err != nil {
			return h, nil, err
		}
		if first {
			first = false
			if h, err = decodeHead(row); err != nil {
				return h, nil, err
			}
			continue
		}
		var p partLine
		if err := unmarshal(row, &p); err != nil {
			return h, nil, err
		}
		if p.Part < 0 || p.Part >= maxObjects {
			return h, nil, fmt.Errorf("a part of number %d", p.Part)
		}
		// Parts get their numbers in the order of their names. So an index names no part twice.
		if n := len(spans); n > 0 && (spans[n-1].first >= string(p.First) || spans[n-1].part >= p.Part) {
			return h, nil, errors.New("the index is not in order")
		}
		spans = append(spans, span{first: string(p.First), part: p.Part})
	}
	if first {
		return h, nil, errors.New("an index without a head")
	}
	return h, spans, nil
}

// cutLine takes the first line from b, without its end.
func cutLine(b []byte) (row, rest []byte, err error) {
	row, rest, ok := bytes.Cut(b, []byte{'\n'})
	if !ok {
		return nil, nil, errors.New("a line without an end")
	}
	return row, rest, nil
}

// lineAt is the line that begins at off in b, without its end.
func lineAt(b []byte, off int64) ([]byte, error) {
	if off < 0 || off >= int64(len(b)) || off > 0 && b[off-1] != '\n' {
		return nil, fmt.Errorf("no line begins at byte %d", off)
	}
	row, _, err := cutLine(b[off:])
	return row, err
}

// nameBefore is the name of the line that ends at off, where another begins; "" at the beginning.
func nameBefore(lines []byte, off int64) (string, error) {
	if off == 0 {
		return "", nil
	}
	row := lines[:off-1]
	return lineName(row[bytes.LastIndexByte(row, '\n')+1:])
}

// findLine finds the line of name in lines that are in order. off is where it begins, or -1.
func findLine(lines []byte, name string) (off int64, err error) {
	lo, hi := 0, len(lines) // both are where lines begin
	for lo < hi {
		mid := lo + (hi-lo)/2
		if i := bytes.LastIndexByte(lines[lo:mid], '\n'); i >= 0 {
			mid = lo + i + 1
		} else {
			mid = lo
		}
		row, _, err := cutLine(lines[mid:hi])
		if err != nil {
			return -1, err
		}
		got, err := lineName(row)
		switch {
		case err != nil:
			return -1, err
		case got == name:
			return int64(mid), nil
		case got < name:
			lo = mid + len(row) + 1
		default:
			hi = mid
		}
	}
	return -1, nil
}

// findChunk is the place of the chunk that has name, if one does; -1 if it is before all.
func findChunk(list []chunk, name string) int {
	return sort.Search(len(list), func(i int) bool { return list[i].first > name }) - 1
}
