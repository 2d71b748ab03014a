package lines_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/nfsbox/nfsbox/internal/base/lines"
)

// naive is what a Searcher should show, from all the lines at once.
func naive(match func(string) bool, s lines.Search, data string) (string, uint64) {
	var out strings.Builder
	selected := uint64(0)
	all := strings.Split(data, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	shown := -1
	show := func(i int, sep string) {
		if i > shown {
			if i > shown+1 && shown >= 0 && s.Before+s.After > 0 {
				out.WriteString("--\n")
			}
			fmt.Fprintf(&out, "%d%s%s\n", i+1, sep, all[i])
			shown = i
		}
	}
	after := 0
	for i, line := range all {
		full := s.Limit && selected >= s.Max
		switch {
		case full && after == 0:
			return out.String(), selected
		case !full && match(line) != s.Invert:
			selected++
			for k := max(i-s.Before, 0); k < i; k++ {
				show(k, "-")
			}
			show(i, ":")
			after = s.After
		case after > 0:
			after--
			show(i, "-")
		}
	}
	return out.String(), selected
}

// FuzzBlocks: however a stream comes in pieces, and wherever blocks end, the lines are those of the whole.
func FuzzBlocks(f *testing.F) {
	f.Add("a\nb\nab\n\nc", "b", uint8(0), uint8(1), uint8(1), uint16(0))
	f.Add("x\xff\x00\r\na", "[^a]$", uint8(1), uint8(0), uint8(3), uint16(40000))
	f.Add("aaaa", "a", uint8(2), uint8(2), uint8(0), uint16(65000))
	f.Fuzz(func(t *testing.T, data, pattern string, kind, before, after uint8, pad uint16) {
		if strings.Contains(pattern, "\n") {
			return
		}
		// Blocks end within what is repeated.
		data = strings.Repeat("-\n", int(pad)) + data + strings.Repeat(" ", int(pad)) + data
		p, err := lines.Compile([]string{pattern}, lines.Options{Fixed: true})
		if err != nil {
			t.Fatal(err)
		}
		s := lines.Search{Invert: kind&1 != 0, Limit: kind&2 != 0, Max: uint64(kind >> 3), Before: int(before % 8), After: int(after % 8), Text: true}
		want, selected := naive(func(line string) bool { return strings.Contains(line, pattern) }, s, data)
		got, r := searched(t, p, s, []byte(data))
		if got != want || r.Selected != selected {
			t.Fatalf("%q in %d bytes, %+v: %d lines, want %d\n%s", pattern, len(data), s, r.Selected, selected, differ(got, want))
		}
		var out bytes.Buffer
		r, err = lines.NewSearcher(p, s, nil).Search(iotest.HalfReader(iotest.DataErrReader(strings.NewReader(data))), func(l *lines.Line) error {
			out.Write(l.Text)
			if string(l.Text) != data[l.Offset:l.Offset+uint64(len(l.Text))] {
				t.Errorf("line %d is not at %d", l.Number, l.Offset)
			}
			return nil
		})
		if err != nil || r.Selected != selected {
			t.Fatalf("in halves: %d lines, want %d (%v)", r.Selected, selected, err)
		}
	})
}

// FuzzPatterns: no pattern does harm, and one that Go takes means the same here, of ASCII.
func FuzzPatterns(f *testing.F) {
	for _, pattern := range []string{`a+b`, `(a{100}){10}`, `\Q[\E`, `\xff`, `\377`, `[\x80-\xff]`, "[é]", `(?i)k`, `\x{ff}`, `\`, `(`, `\<a\>`, `\'`, "\\`a{,2}"} {
		f.Add(pattern, "a [K] \\x b")
	}
	f.Fuzz(func(t *testing.T, pattern, line string) {
		if strings.ContainsAny(pattern+line, "\n\x00") {
			return
		}
		p, err := lines.Compile([]string{pattern}, lines.Options{MaxSize: 2000})
		if err != nil {
			return
		}
		_, r := searched(t, p, lines.Search{}, []byte(line+"\n"))
		for _, own := range []string{`\<`, `\>`, "\\`", `\'`, "{,"} { // GNU's, which mean something else to Go
			if strings.Contains(pattern, own) {
				return
			}
		}
		re, err := regexp.Compile(pattern)
		if err == nil && isASCII(pattern+line) && (r.Selected == 1) != re.MatchString(line) {
			t.Errorf("%q in %q: %d, and Go says %t", pattern, line, r.Selected, re.MatchString(line))
		}
	})
}

func isASCII(s string) bool { return strings.IndexFunc(s, func(r rune) bool { return r > 127 }) < 0 }

// TestBytes: a byte is a character, as in the locale C.
func TestBytes(t *testing.T) {
	for _, c := range []struct {
		pattern, line string
		fold, want    bool
	}{
		{`^.$`, "é", false, false}, {`^..$`, "é", false, true}, {`\xc3`, "é", false, true}, {`\303\251`, "é", false, true},
		{`[\x80-\xff]{2}`, "é", false, true}, {`\x{e9}`, "\xe9", false, true}, {"é", "É", true, false}, {"[é]", "\xa9", false, true},
		{`\xe9`, "\xc9", true, false}, {`\Q\xe9\E`, "\xe9", false, false}, {`\Q\xe9\E`, `\xe9`, false, true}, {"k", "\u212a", true, false},
		{`\pL`, "\xe9", false, false}, {`\W`, "\xe9", false, true}, {`é+$`, "é\xa9\xa9", false, true}, {`\n`, "n", false, false}, {`a\nb`, "a", false, false},
	} {
		p, err := lines.Compile([]string{c.pattern}, lines.Options{Fold: c.fold})
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		if _, r := searched(t, p, lines.Search{}, []byte(c.line)); (r.Selected == 1) != c.want {
			t.Errorf("%q in %q: %t, want %t", c.pattern, c.line, !c.want, c.want)
		}
	}
}

// TestBombs: patterns that would become large are refused, before they are compiled.
func TestBombs(t *testing.T) {
	for _, pattern := range []string{"(a{1000}){1000}", "((a{100}){100}){100}", "(((x{10}){10}){10}){2000}", strings.Repeat("(a|b{900})", 200), strings.Repeat("x", 200_000)} {
		if _, err := lines.Compile([]string{pattern}, lines.Options{}); !errors.Is(err, lines.ErrTooLarge) {
			t.Errorf("%.30s: %v", pattern, err)
		}
	}
	if _, err := lines.Compile([]string{strings.Repeat("(", 2000) + strings.Repeat(")", 2000)}, lines.Options{}); err == nil {
		t.Error("2000 groups in each other compile")
	}
	if _, err := lines.Compile([]string{"a{2,1}("}, lines.Options{}); err == nil || errors.Is(err, lines.ErrTooLarge) || !strings.Contains(err.Error(), "{2,1}") {
		t.Errorf("a repetition the wrong way round: %v", err)
	}
	if _, err := lines.Compile([]string{"a(\xff"}, lines.Options{}); err == nil || !strings.Contains(err.Error(), "a(\xff") {
		t.Errorf("the error does not show the pattern: %v", err)
	}
}

// TestTooLong: a line beyond the bound is left out and counted, the others are found, and no more memory is used.
func TestTooLong(t *testing.T) {
	p, err := lines.Compile([]string{"a"}, lines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a", 1<<20)
	s := lines.NewSearcher(p, lines.Search{MaxLine: 200_000, Before: 1}, nil)
	var got strings.Builder
	r, err := s.Search(io.MultiReader(strings.NewReader("a\n"+long+long+"\nb\na\n"), strings.NewReader(long)), func(l *lines.Line) error {
		fmt.Fprintf(&got, "%d@%d:%.10s:%t\n", l.Number, l.Offset, l.Text, l.Gap)
		return nil
	})
	want := fmt.Sprintf("1@0:a:false\n3@%d:b:true\n4@%d:a:false\n", 2*len(long)+3, 2*len(long)+5)
	if err != nil || r.TooLong != 2 || r.FirstTooLong != 2 || got.String() != want {
		t.Errorf("%v %+v\n%s, want\n%s", err, r, got.String(), want)
	}
}

// TestExactBound: a line of the bound is searched, and one of a byte more is not, wherever blocks end.
func TestExactBound(t *testing.T) {
	p, err := lines.Compile([]string{"a"}, lines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const bound = 200_000
	for _, before := range []int{0, 1, 50_000, 98_303} {
		for long := bound - 1; long <= bound+2; long++ {
			for _, end := range []string{"", "\n", "\na\n"} {
				data := strings.Repeat("\n", before) + strings.Repeat("a", long) + end
				want := uint64(strings.Count(end, "a"))
				if long <= bound {
					want++
				}
				for _, from := range []io.Reader{strings.NewReader(data), iotest.HalfReader(strings.NewReader(data))} {
					r, err := lines.NewSearcher(p, lines.Search{MaxLine: bound, Quiet: true}, nil).Search(from, nil)
					if err != nil || r.Selected != want || (r.TooLong == 1) != (long > bound) || long > bound && r.FirstTooLong != uint64(before+1) {
						t.Errorf("%d bytes behind %d, before %q: %+v, want %d (%v)", long, before, end, r, want, err)
					}
				}
			}
		}
	}
}

// TestBehind: a search tells where the line ends that it has selected last, with lines beside it or without.
func TestBehind(t *testing.T) {
	p, err := lines.Compile([]string{"a"}, lines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for data, want := range map[string]uint64{"": 0, "b\n": 0, "a\nb\n": 2, "a\nb\na\nb\na\n": 6, "b\na": 3, strings.Repeat("b\n", 100_000) + "a\n": 200_002} {
		r, err := lines.NewSearcher(p, lines.Search{Limit: true, Max: 2, After: 2}, nil).Search(strings.NewReader(data), func(*lines.Line) error { return nil })
		if err != nil || r.Behind != want {
			t.Errorf("%.20q: %d, want %d (%v)", data, r.Behind, want, err)
		}
	}
}

// TestNoPattern: no line matches none.
func TestNoPattern(t *testing.T) {
	for _, o := range []lines.Options{{}, {Word: true}, {Whole: true}, {Fixed: true, Fold: true}} {
		p, err := lines.Compile(nil, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, invert := range []bool{false, true} {
			if out, r := searched(t, p, lines.Search{Invert: invert}, []byte("a\n\nb")); (r.Selected == 3) != invert || (out == "") == invert {
				t.Errorf("%+v: %+v %q", o, r, out)
			}
		}
	}
}

// TestBinary: from a block with a NUL on nothing is shown; what was before is.
func TestBinary(t *testing.T) {
	p, err := lines.Compile([]string{"^a"}, lines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	late := "a\n" + strings.Repeat("-\n", 100_000) + "b\x00a\n"
	for _, c := range []struct {
		data     string
		s        lines.Search
		shown    int
		binary   bool
		hit      bool
		selected uint64
	}{
		{"a\x00\na\n", lines.Search{}, 0, true, true, 1}, {"a\x00\na\n", lines.Search{Text: true}, 2, false, false, 2},
		{"b\x00a\n", lines.Search{Quiet: true}, 0, true, true, 1}, {"b\x00c\n", lines.Search{}, 0, true, false, 0},
		{"a\nb\x00\n", lines.Search{Skip: true}, 0, true, false, 0}, {late, lines.Search{}, 1, true, true, 2},
	} {
		n := 0
		r, err := lines.NewSearcher(p, c.s, nil).Search(strings.NewReader(c.data), func(*lines.Line) error { n++; return nil })
		if err != nil || n != c.shown || r.Binary != c.binary || r.BinarySelected != c.hit || r.Selected != c.selected {
			t.Errorf("%.10q %+v: shown %d, %+v (%v)", c.data, c.s, n, r, err)
		}
	}
}

// TestReadError: what came before an error counts, and what shows a line may end it.
func TestReadError(t *testing.T) {
	p, err := lines.Compile([]string{"a"}, lines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	r, err := lines.NewSearcher(p, lines.Search{}, nil).Search(io.MultiReader(strings.NewReader("a\na"), iotest.ErrReader(broken)), func(*lines.Line) error { return nil })
	if !errors.Is(err, broken) || r.Selected != 1 {
		t.Errorf("%+v %v", r, err)
	}
	_, err = lines.NewSearcher(p, lines.Search{}, nil).Search(strings.NewReader("a\na\n"), func(*lines.Line) error { return broken })
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestMaxMatch: the expression is not asked about a line that is too long for it, which neither matches nor does not.
func TestMaxMatch(t *testing.T) {
	text := []byte("ab\nabbbbbbb\nc\nccccccccc\nab\n")
	for _, c := range []struct {
		pattern          string
		search           lines.Search
		selected         uint64
		tooLong, firstOf uint64
	}{
		{"ab+", lines.Search{}, 2, 1, 2}, // the other long line has no "ab"
		{"[ab]+", lines.Search{}, 2, 2, 2},
		{"[ab]+", lines.Search{Invert: true}, 1, 2, 2},
		{"ab", lines.Search{}, 3, 0, 0}, // no expression is needed
		{"[ab]+", lines.Search{Limit: true, Max: 1}, 1, 0, 0},
	} {
		p, err := lines.Compile([]string{c.pattern}, lines.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c.search.MaxMatch = 5
		if _, r := searched(t, p, c.search, text); r.Selected != c.selected || r.TooLong != c.tooLong || r.FirstTooLong != c.firstOf {
			t.Errorf("%q, %+v: %+v", c.pattern, c.search, r)
		}
	}
}
