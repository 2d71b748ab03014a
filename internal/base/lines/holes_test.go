package lines_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/base/lines"
)

// sparse is a stream of pieces, of which those of zeros are holes.
type sparse struct{ pieces [][]byte }

// Read fills p, so that blocks end where they do for GNU grep.
func (s *sparse) Read(p []byte) (n int, err error) {
	for n < len(p) && len(s.pieces) > 0 {
		k := copy(p[n:], s.pieces[0])
		n += k
		if s.pieces[0] = s.pieces[0][k:]; len(s.pieces[0]) == 0 {
			s.pieces = s.pieces[1:]
		}
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (s *sparse) Hole() uint64 {
	if len(s.pieces) == 0 || len(bytes.Trim(s.pieces[0], "\x00")) > 0 {
		return 0
	}
	n := len(s.pieces[0])
	s.pieces = s.pieces[1:]
	return uint64(n)
}

// holeSearches are searches to which zeros mean different things.
var holeSearches = []struct {
	args []string
	s    lines.Search
}{
	{[]string{"-n"}, lines.Search{}},
	{[]string{"-c"}, lines.Search{Quiet: true}},
	{[]string{"-c", "-v"}, lines.Search{Quiet: true, Invert: true}},
	{[]string{"-c", "-v", "-m150000"}, lines.Search{Quiet: true, Invert: true, Limit: true, Max: 150_000}},
	{[]string{"-n", "-m2"}, lines.Search{Limit: true, Max: 2}},
	{[]string{"-c", "-a"}, lines.Search{Quiet: true, Text: true}},
	{[]string{"-n", "-a", "-v"}, lines.Search{Text: true, Invert: true}},
}

// TestHoles: zeros that are not read, and those that are, are for a search what they are for GNU grep, which reads all.
func TestHoles(t *testing.T) {
	grep := grepPath(t)
	file := filepath.Join(t.TempDir(), "file")
	n := 12
	if testing.Short() {
		n = 3
	}
	for seed := range uint64(n) {
		r := rand.New(rand.NewPCG(seed, 4))
		var pieces [][]byte
		for range 1 + r.IntN(3) {
			pieces = append(pieces, []byte(strings.Repeat("-\n", r.IntN(60_000))+"ab\n"+strings.Repeat("c", r.IntN(3))), make([]byte, r.IntN(1<<20)), []byte("ab\n\nb"))
		}
		data := bytes.Join(pieces, nil)
		for _, pattern := range []string{"ab", "^$", "^c?b?$", "", "x"} {
			for _, c := range holeSearches {
				if pattern == "" && c.s.Invert {
					continue // GNU grep opens nothing
				}
				want := gnu(t, grep, file, data, append([]string{"-E", "-e", pattern}, c.args...))
				p, err := lines.Compile([]string{pattern}, lines.Options{})
				if err != nil {
					t.Fatal(err)
				}
				for _, from := range []io.Reader{&sparse{pieces: slices.Clone(pieces)}, bytes.NewReader(data)} {
					if got := holesSearched(t, p, c.s, from); got != want {
						t.Errorf("seed %d: %T: grep %q of %q: %.200q, want %.200q", seed, from, c.args, pattern, got, want)
					}
				}
			}
		}
	}
}

func holesSearched(t *testing.T, p *lines.Pattern, s lines.Search, from io.Reader) string {
	t.Helper()
	var out strings.Builder
	r, err := lines.NewSearcher(p, s, nil).Search(from, func(l *lines.Line) error {
		fmt.Fprintf(&out, "%d:%s\n", l.Number, l.Text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.Quiet {
		return fmt.Sprintf("%d\n", r.Selected)
	}
	return out.String()
}

// TestLargeHole: a hole of a tebibyte takes no reads. Lines and bytes behind it have their numbers; of text it is a line that
// is too long.
func TestLargeHole(t *testing.T) {
	p, err := lines.Compile([]string{"a"}, lines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		s        lines.Search
		selected uint64
		behind   uint64
		tooLong  uint64
	}{
		{lines.Search{Quiet: true}, 2, hole + 204, 0}, {lines.Search{Quiet: true, Invert: true}, hole + 101, hole + 206, 0},
		{lines.Search{Quiet: true, Text: true}, 2, hole + 204, 1}, {lines.Search{Quiet: true, Invert: true, Limit: true, Max: 1 << 30}, 1 << 30, 1<<30 + 52, 0},
	} {
		from := &huge{head: strings.Repeat("b\n", 50) + "a\n", tail: strings.Repeat("b\n", 50) + "a\nb\n"}
		r, err := lines.NewSearcher(p, c.s, nil).Search(from, nil)
		if err != nil || r.Selected != c.selected || r.TooLong != c.tooLong || from.zeros > 32<<20 {
			t.Errorf("%+v: %+v, want %d (%v); %d zeros were read", c.s, r, c.selected, err, from.zeros)
		}
		if !c.s.Text && r.Behind != c.behind {
			t.Errorf("%+v: the last one ends at %d, want %d", c.s, r.Behind, c.behind)
		}
	}
}

const hole = 1 << 40

// huge is a text, a hole, and a text.
type huge struct {
	head, tail string
	zeros      int // that were read
	passed     bool
}

func (h *huge) Read(p []byte) (int, error) {
	var n int
	switch {
	case h.head != "":
		n = copy(p, h.head)
		h.head = h.head[n:]
	case !h.passed:
		clear(p)
		n = len(p)
		h.zeros += n
	case h.tail == "":
		return 0, io.EOF
	default:
		n = copy(p, h.tail)
		h.tail = h.tail[n:]
	}
	return n, nil
}

func (h *huge) Hole() uint64 {
	if h.passed || h.head != "" {
		return 0
	}
	h.passed = true
	return hole - uint64(h.zeros)
}
