package lines_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/base/lines"
)

// grepPath is GNU grep's, or the test is skipped.
func grepPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("grep")
	if err == nil {
		var out []byte
		out, err = exec.Command(path, "--version").Output()
		if err == nil && !bytes.Contains(out, []byte("GNU grep")) {
			err = errors.New("it is not GNU's")
		}
	}
	if err != nil {
		t.Skipf("NOT TESTED: GNU grep: %v", err)
	}
	return path
}

// searched is what grep -n would print, by a Searcher.
func searched(t *testing.T, p *lines.Pattern, s lines.Search, data []byte) (string, lines.Result) {
	t.Helper()
	var out strings.Builder
	r, err := lines.NewSearcher(p, s, nil).Search(bytes.NewReader(data), func(l *lines.Line) error {
		sep := ':'
		if l.Context {
			sep = '-'
		}
		if l.Gap && (s.Before > 0 || s.After > 0) {
			out.WriteString("--\n")
		}
		fmt.Fprintf(&out, "%d%c%s\n", l.Number, sep, l.Text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), r
}

// atoms are what random expressions are made of. Both grammars have them.
var atoms = []string{
	"a", "b", "c", "ab", "abc", "x", "B", ".", "[ab]", "[^x]", "[a-c]", "[[:alpha:]]", `\w`, `\W`, "é", "\xff", "[\xe9\xff]", "[^\xff]", "foo", "K", "s", " ", "_", "1",
}

// expression makes a random one.
func expression(r *rand.Rand, depth int) string {
	atom := func() string { return atoms[r.IntN(len(atoms))] }
	if depth == 0 {
		return atom()
	}
	switch r.IntN(13) {
	case 0, 1, 2, 3:
		return expression(r, depth-1) + expression(r, depth-1)
	case 10:
		return `\<` + expression(r, depth-1)
	case 11:
		return expression(r, depth-1) + `\>`
	case 12:
		return `(\<|` + expression(r, depth-1) + ")" + expression(r, depth-1)
	case 4:
		return "(" + expression(r, depth-1) + "|" + expression(r, depth-1) + ")"
	case 5:
		return "(" + expression(r, depth-1) + ")" + []string{"*", "+", "?", "{2}", "{1,3}", "{2,}", "{,2}"}[r.IntN(7)]
	case 6:
		return "^" + expression(r, depth-1)
	case 7:
		return expression(r, depth-1) + "$"
	case 8:
		return `\b` + expression(r, depth-1)
	}
	return atom()
}

// text makes random bytes: short lines and long ones, any line ends, bytes of all kinds.
func text(r *rand.Rand, nuls bool) []byte {
	words := []string{"a", "b", "c", "ab", "abc", "x", "foo", "B", "K", "s", "S", "é", "\xff", "\xe9", " ", "_", "1", "\t", "\r", "日", "\n", "\n", "\n", "\r\n"}
	var b bytes.Buffer
	for n := r.IntN(400); n > 0; n-- {
		switch k := r.IntN(800); {
		case k == 0:
			b.WriteString(strings.Repeat(words[r.IntN(20)], r.IntN(150<<10)))
		case k < 3:
			b.WriteString(strings.Repeat("\n", r.IntN(50)))
		case k < 5 && nuls:
			b.WriteByte(0)
		default:
			b.WriteString(words[r.IntN(len(words))])
		}
	}
	return b.Bytes()
}

// nullable reports whether an expression can match nothing, at least within a line: then grep's -w means more than it says.
func nullable(t *testing.T, pattern string, o lines.Options) bool {
	t.Helper()
	o.Word, o.Whole = false, false
	p, err := lines.Compile([]string{pattern}, o)
	if err != nil {
		t.Fatal(err)
	}
	_, r := searched(t, p, lines.Search{}, []byte("\n"))
	return r.Selected > 0
}

// TestAgainstGNU: the lines, numbers, contexts and counts of random searches are those of GNU grep in the locale C.
func TestAgainstGNU(t *testing.T) {
	grep := grepPath(t)
	file := filepath.Join(t.TempDir(), "file")
	n := 400
	if testing.Short() {
		n = 100
	}
	for seed := range uint64(n) {
		r := rand.New(rand.NewPCG(seed, 1))
		o := lines.Options{Fixed: r.IntN(6) == 0, Fold: r.IntN(4) == 0, Word: r.IntN(6) == 0, Whole: r.IntN(8) == 0}
		var patterns, args []string
		for range 1 + r.IntN(2)*r.IntN(3) {
			pattern := expression(r, r.IntN(4))
			if o.Word && nullable(t, pattern, o) {
				pattern = "ab"
			}
			patterns = append(patterns, pattern)
			args = append(args, "-e", pattern)
		}
		s := lines.Search{Invert: r.IntN(5) == 0, Limit: r.IntN(6) == 0, Max: uint64(1 + r.IntN(4)), Text: true}
		if r.IntN(3) == 0 {
			s.Before, s.After = r.IntN(4), r.IntN(4)
		}
		for flag, set := range map[string]bool{"-F": o.Fixed, "-E": !o.Fixed, "-i": o.Fold, "-w": o.Word, "-x": o.Whole, "-v": s.Invert, "-n": true, "-a": true} {
			if set {
				args = append(args, flag)
			}
		}
		if s.Limit {
			args = append(args, fmt.Sprintf("-m%d", s.Max))
		}
		if s.Before > 0 || s.After > 0 {
			args = append(args, fmt.Sprintf("-B%d", s.Before), fmt.Sprintf("-A%d", s.After))
		}
		data := text(r, true)
		p, err := lines.Compile(patterns, o)
		if err != nil {
			t.Fatalf("seed %d: %q: %v", seed, patterns, err)
		}
		got, res := searched(t, p, s, data)
		if want := gnu(t, grep, file, data, args); got != want {
			t.Fatalf("seed %d: grep %q of %d bytes:\n%s", seed, args, len(data), differ(got, want))
		}
		s.Quiet = true
		args = append(args, "-c")
		_, res = searched(t, p, s, data)
		if want := strings.TrimSpace(gnu(t, grep, file, data, args)); fmt.Sprint(res.Selected) != want {
			t.Fatalf("seed %d: grep %q: %d, want %s", seed, args, res.Selected, want)
		}
	}
}

// gnu runs grep.
func gnu(t *testing.T, grep, file string, data []byte, args []string) string {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(grep, append(slices.Clone(args), file)...)
	cmd.Env = []string{"LC_ALL=C"}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = nil
	}
	if err != nil {
		t.Fatalf("grep %q: %v: %s", args, err, &stderr)
	}
	return string(out)
}

// differ shows the first line that is not the same.
func differ(got, want string) string {
	g, w := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	for i := range max(len(g), len(w)) {
		a, b := "", ""
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			return fmt.Sprintf("line %d: %.300q, want %.300q", i+1, a, b)
		}
	}
	return ""
}

// repeatedAssertion may be a repeated group with an assertion in it.
var repeatedAssertion = regexp.MustCompile(`(?:^|[^\[])(?:\^|\\[b<>]).*\)[*+?{]`)

// TestSpansAgainstGNU: grep -o prints the same matches.
func TestSpansAgainstGNU(t *testing.T) {
	grep := grepPath(t)
	file := filepath.Join(t.TempDir(), "file")
	n := 400
	if testing.Short() {
		n = 100
	}
	for seed := range uint64(n) {
		r := rand.New(rand.NewPCG(seed, 2))
		o := lines.Options{Fold: r.IntN(4) == 0, Word: r.IntN(5) == 0}
		o.Whole = !o.Word && r.IntN(9) == 0 // -xow prints an empty line more
		pattern := expression(r, r.IntN(4))
		switch {
		case o.Word: // of others GNU grep does not try all shorter matches
			pattern = []string{"[ab]+", "foo|abc|a", "K", "(a|ab)c?", "[^x ]b*"}[r.IntN(5)]
		case repeatedAssertion.MatchString(pattern): // of them it takes some for true that are not
			pattern = "ab"
		}
		args := []string{"-Eano", "-e", pattern}
		for flag, set := range map[string]bool{"-i": o.Fold, "-w": o.Word, "-x": o.Whole} {
			if set {
				args = append(args, flag)
			}
		}
		data := text(r, false)
		if o.Word {
			data = data[:min(len(data), 4096)] // grep's time grows with the square of a line
		}
		p, err := lines.Compile([]string{pattern}, o)
		if err != nil {
			t.Fatalf("seed %d: %q: %v", seed, pattern, err)
		}
		var got strings.Builder
		_, err = lines.NewSearcher(p, lines.Search{Text: true}, nil).Search(bytes.NewReader(data), func(l *lines.Line) error {
			return p.Each(l.Text, func(start, end int) error {
				fmt.Fprintf(&got, "%d:%s\n", l.Number, l.Text[start:end])
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := gnu(t, grep, file, data, args); got.String() != want {
			t.Errorf("seed %d: grep %q of %d bytes:\n%s", seed, args, len(data), differ(got.String(), want))
		}
	}
}
