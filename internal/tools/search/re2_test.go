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
	for name, c := range map[string]struct{ re2, byGo time.Duration }{"slow": {10, 1}, "fast": {1, 10}, "like Go": {5, 4}} {
		r := NewRE2(compile("[aq] [qa]"), DefaultMaxMem)
		asked, at := 0, time.Time{}
		r.now = func() time.Time {
			asked++
			switch asked % 3 {
			case 2:
				at = at.Add(c.re2)
			case 0:
				at = at.Add(c.byGo)
			}
			return at
		}
		n := count(r)
		byRE2, byGo, why := r.Used()
		if n != 0 && n != 20_000 || (why != "") != (name == "slow") || (byGo > 0) != (name == "slow") || byRE2+byGo != 20_000 {
			t.Errorf("%s: %d lines, %d by RE2, %d by Go: %q", name, n, byRE2, byGo, why)
		}
	}
}
