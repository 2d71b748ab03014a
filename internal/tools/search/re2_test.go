package search

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/lines"
)

// TestRE2Agrees: RE2 and Go's expressions tell the same of the same lines, of any bytes.
func TestRE2Agrees(t *testing.T) {
	parts := []string{"a", "b", "K", "s", "é", "\xff", `\xe9`, ".", "[ab]", "[^x]", "[^\xe9]", `[\x80-\xff]`, `\w`, `\W`, `\b`, "^", "$", "(a|é)", "(ab)*", "b+", ".{2,3}", "[[:upper:]]", `\.`, "(?i)e"}
	n := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		var pattern strings.Builder
		for range 1 + r.IntN(4) {
			pattern.WriteString(parts[r.IntN(len(parts))])
		}
		p, err := lines.Compile([]string{pattern.String()}, lines.Options{Fold: r.IntN(3) == 0, Word: r.IntN(5) == 0, Whole: r.IntN(5) == 0})
		if err != nil {
			continue
		}
		re2 := NewRE2(p, 1<<20)
		if re2.set == nil {
			t.Errorf("%q: %s", pattern.String(), re2.why)
			continue
		}
		w := &re2Worker{r: re2, byGo: p.Matcher()}
		for range 60 {
			var line []byte
			for range r.IntN(8) {
				line = append(line, []string{"a", "b", "A", "k", "S", "é", "É", "\xff", "\xe9", "\xc9", "x", " ", "ab", ".", "E"}[r.IntN(15)]...)
			}
			got, err := w.byRE2(line)
			if want := w.byGo(line); err != nil || got != want {
				t.Fatalf("%q in %q: %t, want %t (%v)", pattern.String(), line, got, want, err)
			}
			n++
		}
	}
	if n < 10_000 {
		t.Errorf("only %d lines were looked at", n)
	}
}

// TestRE2GivenUp: where RE2 cannot go on, or only slowly, Go's expressions do, and the results stay the same.
func TestRE2GivenUp(t *testing.T) {
	compile := func(pattern string) *lines.Pattern {
		p, err := lines.Compile([]string{pattern}, lines.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	text := bytes.Repeat([]byte("abcabc q ab\n"), 20_000)
	count := func(r *RE2) uint64 {
		res, err := lines.NewSearcher(r.p, lines.Search{Quiet: true}, r.Match()).Search(bytes.NewReader(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		return res.Selected
	}
	large := NewRE2(compile("(?:"+strings.Repeat("(?i:alpha)[a-z]{3,12}beta|", 300)+"q)"), MinMaxMem)
	if n := count(large); n != 20_000 || large.why == "" {
		t.Errorf("a pattern without room: %d lines, %q", n, large.why)
	}
	// A clock that stands still but while RE2 is asked.
	for name, c := range map[string]struct{ warm, re2, byGo time.Duration }{
		"slow": {1, 10, 1}, "always slow": {10, 10, 1}, "fast": {1, 1, 10}, "like Go": {5, 5, 4}, "slow at first": {1000, 1, 10},
	} {
		r := NewRE2(compile("[aq] [qa]"), DefaultMaxMem)
		asked, at := 0, time.Time{}
		r.now = func() time.Time {
			asked++
			switch asked % 3 {
			case 2:
				took := c.re2
				if asked < 3*samples {
					took = c.warm
				}
				at = at.Add(took)
			case 0:
				at = at.Add(c.byGo)
			}
			return at
		}
		n := count(r)
		byRE2, byGo, why := r.Used()
		slow := c.re2 > 5
		if n != 0 && n != 20_000 || (why != "") != slow || slow && byRE2 != 2*samples*sampleEach || byRE2+byGo != 20_000 {
			t.Errorf("%s: %d lines, %d by RE2, %d by Go: %q", name, n, byRE2, byGo, why)
		}
	}
}

// TestRE2WarmsUp: with a budget of 256 KiB RE2 is judged behind its first window, and the lines are those of Go's expressions.
func TestRE2WarmsUp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	var text bytes.Buffer
	for text.Len() < 2<<20 {
		for n := 1 + r.IntN(20); n > 0; n-- {
			text.WriteString([]string{"ridge", "ridgeway", "a.b@example.org", "zaq", "the", "of", "yards"}[r.IntN(7)])
			text.WriteByte(" xyzab\xe9"[r.IntN(7)])
		}
		text.WriteByte('\n')
	}
	text.WriteString("b" + strings.Repeat("r", 20) + "y" + strings.Repeat("o", 10) + "q\n")
	for _, pattern := range []string{"ridgeway", `[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}`, "[ab][^x]{14}z", "[ab][^x]{20}[yz][^a]{10}q"} {
		p, err := lines.Compile([]string{pattern}, lines.Options{})
		if err != nil {
			t.Fatal(err)
		}
		count := func(match func([]byte) bool) uint64 {
			res, err := lines.NewSearcher(p, lines.Search{Quiet: true}, match).Search(bytes.NewReader(text.Bytes()), nil)
			if err != nil {
				t.Fatal(err)
			}
			return res.Selected
		}
		re2 := NewRE2(p, 256<<10)
		want := count(nil)
		if got := count(re2.Match()); got != want || want == 0 {
			t.Errorf("%s: %d lines, want %d", pattern, got, want)
		}
		if byRE2, byGo, why := re2.Used(); why != "" && byRE2 < (1+warmUp)*samples*sampleEach || why == "" && byGo > 0 {
			t.Errorf("%s: given up after %d lines, then %d: %s", pattern, byRE2, byGo, why)
		}
	}
}
