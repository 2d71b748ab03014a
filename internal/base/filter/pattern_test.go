package filter

import (
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// chosen is what a filter says of a path whose directories are walked from the top; a slash at its end is a directory's.
func chosen(f *Filter, path string) bool {
	var in any
	path, isDir := strings.CutSuffix(path, "/")
	parts := strings.Split(path, "/")
	for i, name := range parts {
		e := &vfs.Entry{Name: []byte(name), Attr: vfs.Attr{Type: vfs.TypeReg}}
		if i < len(parts)-1 || isDir {
			e.Attr.Type = vfs.TypeDir
		}
		below, ok := f.Choose(in, e)
		if !ok {
			return false
		}
		in = below
	}
	return true
}

func mustNew(t testing.TB, o Options) *Filter {
	t.Helper()
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestPatterns: what rsync(1) says of patterns, in "INCLUDE/EXCLUDE PATTERN RULES" and "SIMPLE INCLUDE/EXCLUDE EXAMPLE".
func TestPatterns(t *testing.T) {
	for _, c := range []struct{ pattern, matched, not string }{
		{"foo", "foo a/foo a/b/foo foo/", "food a/foo.c xfoo"},
		{"/foo", "foo foo/", "a/foo food"},
		{"foo/", "foo/ a/foo/ foo/x", "foo a/foo"},
		{"foo/bar", "foo/bar a/foo/bar", "bar foo xfoo/bar foo/x/bar foo/barn"},
		{"/foo/bar", "foo/bar foo/bar/", "a/foo/bar foo/b"},
		{"*.o", "x.o a/x.o .o", "x.c x.o2 o"},
		{"a*c", "ac abc a/abbc", "ab a/c cab"},
		{"a/*/c", "a/b/c x/a/b/c", "a/c a/b/b/c"},
		{"/foo/*/bar", "foo/x/bar", "foo/bar foo/x/y/bar x/foo/y/bar"},
		{"/foo/**/bar", "foo/x/bar foo/x/y/bar", "foo/bar x/foo/x/bar"},
		{"**/bar", "bar a/bar a/b/bar", "abar a/abar"},
		{"**bar", "bar abar a/abar a/b/bar", "bark"},
		{"a**b", "ab axb a/b a/x/b x/a/b xx/axxb", "xab a"},
		{"foo/***", "foo/ foo/x foo/x/y a/foo/ a/foo/x", "foo food/"},
		{"/foo/***", "foo/ foo/x foo/x/y", "foo a/foo/x"},
		{"foo/**", "foo/x foo/x/y a/foo/x", "foo foo/"},
		{"fo?", "foo a/fox", "fo foxx"},
		{"a?b", "axb", "a/b"},
		{"a[/]b", "", "a/b"},
		{"[ab]x", "ax c/bx", "cx abx"},
		{"[!ab]x", "cx", "ax bx"},
		{"[^ab]x", "cx", "bx"},
		{"[a-c]x", "ax bx cx", "dx -x"},
		{"[]x]y", "]y xy", "ay"},
		{"[a-]y", "-y ay", "by"},
		{"[[:digit:]]*", "1 2x", "x1"},
		{"[[:alpha:]_]", "a _ Z", "1 é"},
		{`[\]]`, "]", `\`},
		{`\*x`, `\*x\`[1:3], "ax"},
		{`a\b`, `a\b`, "ab"},
		{`a\b*`, "ab abc", `a\b`},
		{"*", "a b/ a/b", ""},
		{"/*", "a b/", ""},
		{"**", "a b/ a/b", ""},
		{"*/", "a/ a/b/", "a"},
		{"?", "a \xff", "é ab"},
		{"\xff", "\xff", "\xfe ÿ"},
		{"caf?", "", "café"},
		{"/", "", "a b/"},
	} {
		f := mustNew(t, Options{Rules: []Rule{{Pattern: c.pattern}}})
		for _, path := range strings.Fields(c.matched) {
			if chosen(f, path) {
				t.Errorf("%q does not match %q", c.pattern, path)
			}
		}
		for _, path := range strings.Fields(c.not) {
			if !chosen(f, path) {
				t.Errorf("%q matches %q", c.pattern, path)
			}
		}
	}
}

// TestFirstRuleDecides: as in rsync, and a directory that is left out takes with it what lies below.
func TestFirstRuleDecides(t *testing.T) {
	f := mustNew(t, Options{Rules: []Rule{
		{Include: true, Pattern: "/some/"}, {Include: true, Pattern: "/some/path/"}, {Include: true, Pattern: "/some/path/this-file"},
		{Include: true, Pattern: "keep.o"}, {Pattern: "*.o"}, {Pattern: "/some/*"}, {Pattern: "/other"},
	}})
	for path, want := range map[string]bool{
		"some/": true, "some/path/": true, "some/path/this-file": true, "some/else": false, "some/else/this-file": false,
		"keep.o": true, "x.o": false, "a/x.o": false, "a/keep.o": true, "other/keep.o": false, "z": true,
	} {
		if got := chosen(f, path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestBadPatterns(t *testing.T) {
	for _, bad := range []string{
		"", "[", "a[b", "[]", "[!]", "[a-", `[\`, `x*\`, "[[:nosuch:]]", "[[:alpha:]", "a\x00b", strings.Repeat("a", maxPattern+1),
	} {
		if _, err := New(Options{Rules: []Rule{{Pattern: bad, From: "F:7"}}}); err == nil || !strings.HasPrefix(err.Error(), "F:7: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	many := make([]Rule, maxRules+1)
	long := make([]Rule, maxPathWords/16)
	for i := range many {
		many[i].Pattern = "x"
	}
	for i := range long {
		long[i].Pattern = "/" + strings.Repeat("x", maxPattern-1)
	}
	for _, rules := range [][]Rule{many, append(long, long...)} {
		if _, err := New(Options{Rules: rules}); err == nil {
			t.Errorf("%d rules of %d bytes: no error", len(rules), len(rules[0].Pattern))
		}
	}
}

// TestBoundedTime: patterns that backtracking would be at for longer than the universe has been, on a path that is
// as deep as a walk goes.
func TestBoundedTime(t *testing.T) {
	f := mustNew(t, Options{Rules: []Rule{
		{Pattern: strings.Repeat("a*", 100) + "b"}, {Pattern: strings.Repeat("a**", 100) + "b"}, {Pattern: strings.Repeat("**/a*", 100) + "b"},
	}})
	if !chosen(f, strings.Repeat(strings.Repeat("a", 100)+"/", 2000)+strings.Repeat("a", 255)) {
		t.Error("it matches")
	}
}

// matchReference is wildmatch as one would write it down.
func matchReference(pattern []element, text string) bool {
	if len(pattern) == 0 {
		return text == ""
	}
	e := &pattern[0]
	if e.star > 0 {
		return matchReference(pattern[1:], text) || text != "" && (e.star > 1 || text[0] != '/') && matchReference(pattern, text[1:])
	}
	return text != "" && e.has(text[0]) && matchReference(pattern[1:], text[1:])
}

// ruleReference is what rsync's exclude.c does with a path and a pattern: parts of the path are cut off, and slashes added.
func ruleReference(pattern, path string, isDir bool) (matches, bad bool) {
	if len(pattern) > 1 && strings.HasSuffix(pattern, "/") {
		pattern = pattern[:len(pattern)-1]
		if !isDir {
			return false, false
		}
	}
	slashes, deep, wild := strings.Count(pattern, "/"), strings.Contains(pattern, "**"), strings.ContainsAny(pattern, "*[?")
	if slashes == 0 && !deep {
		path = path[strings.LastIndexByte(path, '/')+1:]
	} else if strings.HasPrefix(pattern, "**") {
		path = "/" + path
	}
	if isDir && deep && strings.HasSuffix(pattern, "***") {
		path += "/"
	}
	pattern, anchored := strings.CutPrefix(pattern, "/")
	all := literal(pattern)
	if wild {
		var err error
		if all, _, err = elements(pattern); err != nil {
			return false, true
		}
	}
	switch {
	case !anchored && slashes > 0 && !deep:
		parts := strings.Split(path, "/")
		return len(parts) > slashes && matchReference(all, strings.Join(parts[len(parts)-slashes-1:], "/")), false
	case !anchored && deep && !strings.HasPrefix(pattern, "**"):
		for rest, more := path, true; more; _, rest, more = strings.Cut(rest, "/") {
			if matchReference(all, rest) {
				return true, false
			}
		}
		return false, false
	}
	return matchReference(all, path), false
}

// FuzzPattern holds the automaton to the reference, for all that lies on the way to a path.
func FuzzPattern(f *testing.F) {
	f.Add("a*[b-d]?/**", "a/bcd/x", true)
	f.Add("[[:alpha:]/x]y/***", "x\xff/y", false)
	f.Add("**/a*/b", "a/ab/b", false)
	f.Add("a/b", "x/a/b", true)
	f.Fuzz(func(t *testing.T, pattern, path string, isDir bool) {
		if len(pattern) > 16 || len(path) > 24 {
			t.Skip()
		}
		for part := range strings.SplitSeq(path, "/") {
			if part == "" || strings.Contains(part, "\x00") || IsSnapshot([]byte(part)) {
				t.Skip()
			}
		}
		f, err := New(Options{Rules: []Rule{{Pattern: pattern}}})
		if err != nil {
			return
		}
		want := true
		for i := range path {
			if path[i] == '/' {
				matches, _ := ruleReference(pattern, path[:i], true)
				want = want && !matches
			}
		}
		matches, bad := ruleReference(pattern, path, isDir)
		if bad {
			t.Fatalf("%q: only the reference takes it as wrong", pattern)
		}
		if isDir {
			path += "/"
		}
		if got := chosen(f, path); got != (want && !matches) {
			t.Errorf("%q, %q: chosen %v", pattern, path, got)
		}
	})
}

// TestNoAllocations: with a few rules an entry costs none.
func TestNoAllocations(t *testing.T) {
	size := uint64(1)
	f := mustNew(t, Options{MinSize: &size, Newer: time.Unix(1, 0), Rules: []Rule{
		{Pattern: "*.tmp"}, {Include: true, Pattern: "/home/*/keep"}, {Pattern: "a/**/b"}, {Pattern: "[Cc]ache/"},
	}})
	in, _ := f.Choose(nil, &vfs.Entry{Name: []byte("home"), Attr: vfs.Attr{Type: vfs.TypeDir}})
	e := &vfs.Entry{Name: []byte("some-file.txt"), Attr: vfs.Attr{Type: vfs.TypeReg, Size: 5, Mtime: time.Unix(2, 0)}}
	if n := testing.AllocsPerRun(100, func() {
		if _, ok := f.Choose(in, e); !ok {
			t.Fatal("it is left out")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	plain := mustNew(t, Options{Rules: []Rule{{Pattern: "*.tmp"}}})
	d := &vfs.Entry{Name: []byte("dir"), Attr: vfs.Attr{Type: vfs.TypeDir}}
	if n := testing.AllocsPerRun(100, func() { plain.Choose(nil, d) }); n != 0 {
		t.Errorf("%v allocations for a directory, with rules of names alone", n)
	}
}

func BenchmarkChoose(b *testing.B) {
	f := mustNew(b, Options{Rules: []Rule{
		{Pattern: "*.tmp"}, {Pattern: "*.o"}, {Pattern: "node_modules/"}, {Include: true, Pattern: "/home/*/keep"}, {Pattern: "a/**/b"},
	}})
	e := &vfs.Entry{Name: []byte("some-file-of-a-usual-length.txt"), Attr: vfs.Attr{Type: vfs.TypeReg}}
	for b.Loop() {
		f.Choose(nil, e)
	}
}
