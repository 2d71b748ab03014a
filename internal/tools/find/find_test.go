package find

import (
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestGlob: what find(1) of GNU findutils 4.9 says of these, in a locale of UTF-8.
func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", ".hidden", true}, {"*", "a/b", true}, {"?", "/", true},
		{"a*b*c", "aXXbXXc", true}, {"a*b*c", "aXXbXX", false}, {"*.tmp", "x.tmp", true}, {"*.tmp", "x.tmp2", false},
		{"[abc]x", "bx", true}, {"[!abc]x", "bx", false}, {"[^abc]x", "dx", true}, {"[a-c]", "b", true}, {"[c-a]", "b", false},
		{"[]]", "]", true}, {"[!]]", "]", false}, {"[a-]", "-", true}, {"[", "[", true}, {"[a", "[a", true}, {"x[", "x[", true},
		{`\*`, "*", true}, {`\*`, "a", false}, {`[\]]`, "]", true}, {`a\b`, "ab", true},
		{"[[:digit:]]*", "1a", true}, {"[[:digit:]]*", "a1", false}, {"[![:space:]]", " ", false}, {"[[:alpha:]-]", "-", true},
		{"?", "é", true}, {"??", "é", false}, {"[é]", "é", true}, {"*é", "xé", true},
		{"?", "\xff", true}, {"\xff", "\xff", true}, {"\xff", "\xfe", false}, {"*\xff*", "a\xffb", true}, {"ÿ", "\xff", false},
		{"***a***", "bab", true}, {"*?", "", false}, {"line\n", "line\n", true}, {"*", "line\nline", true},
	} {
		g, err := ParseGlob(c.pattern, false)
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
		} else if got := g.Match([]byte(c.name)); got != c.want {
			t.Errorf("%q matches %q: %v", c.pattern, c.name, got)
		}
	}
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{{"A*", "aB", true}, {"é", "É", true}, {"[a-c]", "B", true}, {"[!a]", "A", false}, {"x", "y", false}} {
		g, err := ParseGlob(c.pattern, true)
		if err != nil || g.Match([]byte(c.name)) != c.want {
			t.Errorf("%q folded, and %q: %v", c.pattern, c.name, err)
		}
	}
	for _, bad := range []string{`\`, `a\`, "[[:nosuch:]]"} {
		if _, err := ParseGlob(bad, false); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// TestGlobTakesNoExponentialTime: a pattern that backtracking would be at for longer than the universe has been.
func TestGlobTakesNoExponentialTime(t *testing.T) {
	g, err := ParseGlob(strings.Repeat("a*", 40)+"b", false)
	if err != nil || g.Match([]byte(strings.Repeat("a", 255))) {
		t.Error(err)
	}
}

// FuzzGlob: no pattern makes it fail otherwise than by an error, and a name matches itself with all escaped.
func FuzzGlob(f *testing.F) {
	f.Add("a*[b-d]?", "abc", false)
	f.Add("[[:alpha:]", "x\xff", true)
	f.Add("[[:]", "0", true)
	f.Fuzz(func(t *testing.T, pattern, name string, fold bool) {
		if g, err := ParseGlob(pattern, fold); err == nil {
			g.Match([]byte(name))
		}
		g, err := ParseGlob(strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name), fold)
		if err != nil || !g.Match([]byte(name)) {
			t.Errorf("%q does not match itself: %v", name, err)
		}
	})
}

// TestSize: sizes are rounded up to whole units, as find(1) does it.
func TestSize(t *testing.T) {
	for _, c := range []struct {
		test  string
		bytes uint64
		want  bool
	}{
		{"0", 0, true}, {"1", 1, true}, {"1", 512, true}, {"1", 513, false}, {"2", 513, true}, {"-1M", 0, true}, {"-1M", 1, false},
		{"1M", 1, true}, {"+1M", 1 << 20, false}, {"+1M", 1<<20 + 1, true}, {"10c", 10, true}, {"+9c", 10, true}, {"-10c", 10, false},
		{"1w", 2, true}, {"2w", 3, true}, {"1k", 1000, true}, {"+1G", 1 << 31, true}, {"1b", 512, true}, {"+0c", 1<<64 - 1, true},
	} {
		s, err := parseSize(c.test)
		if err != nil || s.holds(c.bytes) != c.want {
			t.Errorf("-size %s of %d bytes: %v, want %v, %v", c.test, c.bytes, !c.want, c.want, err)
		}
	}
	for _, bad := range []string{"", "k", "1x", "--1", "+", "1.5k", "99999999999999999999"} {
		if _, err := parseSize(bad); err == nil {
			t.Errorf("-size %q: no error", bad)
		}
	}
}

// TestAge: ages are rounded down to whole days, and one in the future is negative.
func TestAge(t *testing.T) {
	for age, want := range map[time.Duration]int64{0: 0, day - 1: 0, day: 1, 3*day - 1: 2, -1: -1, -day: -1, -day - 1: -2} {
		if got := days(age); got != want {
			t.Errorf("%v is %d days, want %d", age, got, want)
		}
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"90m": now.Add(-90 * time.Minute), "7d": now.Add(-7 * day), "2w": now.Add(-14 * day), "0s": now,
		"2026-01-31T10:00:00Z": time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC), "2026-01-31": time.Date(2026, 1, 31, 0, 0, 0, 0, time.Local),
		"2026-01-31 10:30": time.Date(2026, 1, 31, 10, 30, 0, 0, time.Local),
	} {
		if got, err := ParseSince(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s is %v, want %v: %v", text, got, want, err)
		}
	}
	for _, bad := range []string{"", "d", "-1d", "1y", "yesterday", "99999999999999w"} {
		if _, err := ParseSince(bad, now); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// TestTests: all that is asked must hold, and what makes no sense is refused.
func TestTests(t *testing.T) {
	now, one := time.Now(), uint32(1)
	file := vfs.Attr{Type: vfs.TypeReg, Size: 100, UID: 1, GID: 2, Mtime: now.Add(-36 * time.Hour)}
	dir := vfs.Attr{Type: vfs.TypeDir, Size: 4096, Mtime: now}
	for i, c := range []struct {
		tests Tests
		file  bool
		dir   bool
	}{
		{Tests{}, true, true}, {Tests{Type: "f"}, true, false}, {Tests{Type: "d,l"}, false, true},
		{Tests{Name: []string{"*.c", "n*"}}, true, true}, {Tests{Name: []string{"*.c"}, IName: []string{"X*"}}, false, false},
		{Tests{Path: []string{"p/*"}}, true, true}, {Tests{IPath: []string{"P/*"}}, true, true}, {Tests{Regex: []string{"name"}}, false, false},
		{Tests{Regex: []string{"p/(name|other).c"}}, true, true}, {Tests{IRegex: []string{".*NAME.C"}}, true, true},
		{Tests{Size: []string{"+50c", "-200c"}}, true, false}, {Tests{Mtime: []string{"1"}}, true, false}, {Tests{Mtime: []string{"-1"}}, false, true},
		{Tests{Newer: []time.Time{now.Add(-time.Hour)}}, false, true}, {Tests{UID: &one}, true, false}, {Tests{GID: &one}, false, false},
		{Tests{Empty: true}, false, true}, {Tests{Type: "f", Empty: true}, false, false},
	} {
		c.tests.Now = now
		m, err := New(&c.tests)
		if err != nil {
			t.Fatal(err)
		}
		for want, a := range map[*vfs.Attr]bool{&file: c.file, &dir: c.dir} {
			o := &Object{Name: []byte("name.c"), Attr: want, Empty: true, Path: func() []byte { return []byte("p/name.c") }}
			if m.Match(o) != a {
				t.Errorf("case %d of %v: want %v", i, want.Type, a)
			}
		}
	}
	for _, bad := range []Tests{
		{Type: "x"}, {Type: "f,"}, {Type: "fd"}, {Name: []string{`\`}}, {Path: []string{"[[:x:]]"}}, {Regex: []string{"("}}, {Size: []string{"x"}}, {Mtime: []string{"1d"}},
	} {
		if _, err := New(&bad); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}
