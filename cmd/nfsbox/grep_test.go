package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// grepTree is a directory that has something for each option.
func grepTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.txt":       "one\ntwo words\nThree\n\nfour two\ntwo\nfive\nsix\nseven two\n",
		"b.c":         "int two(void);\r\nno end two",
		"bin":         "one\ntwo\x00two\nthree\n",
		"late":        "two\n" + strings.Repeat("-\n", 70_000) + "\x00two\n",
		"empty":       "",
		"sub/d.txt":   "caf\xe9 two\nnaïve two two\n",
		"sub/e/f.c":   "_two\ntwo_\n-two-\n",
		"sub/e/g.txt": strings.Repeat("x", 300_000) + "two\nafter\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// gnuPath is GNU grep's, or the test is skipped.
func gnuPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("grep")
	if err != nil {
		t.Skip("NOT TESTED: there is no grep")
	}
	if out, err := exec.Command(path, "--version").Output(); err != nil || !bytes.Contains(out, []byte("GNU grep")) {
		t.Skip("NOT TESTED: grep is not GNU's")
	}
	return path
}

// TestGrepAgainstGNU: with the same arguments the same lines, in each file in the same order, and the same exit status.
func TestGrepAgainstGNU(t *testing.T) {
	path := gnuPath(t)
	t.Chdir(grepTree(t))
	each := 3
	if testing.Short() || need.Race {
		each = 1
	}
	n := 0
	for i, flags := range []string{
		"", "-n", "-b", "-nb", "-c", "-v", "-vc", "-w", "-x", "-i", "-F", "-o", "-ob", "-ov", "-on", "-l", "-L", "-lc", "-Lv", "-q", "-qv", "-s", "-m1", "-m2 -c", "-m0", "-m1 -A3",
		"-A1", "-B2 -n", "-C1", "-C1 -m1", "-A1 -B1 -v -n", "-H", "-h", "-hn", "-a", "-ac", "-I", "-Ic", "-A1 -o", "--color=always", "--color=always -no", "--color=always -A1 -n",
		"--color=always -v -A1", "--color=always -c", "--color=always -l", "-c -H", "-w -o -b", "-x -n -v", "-Iv -A2", "-la", "-ni -C1 -b",
		"-A0", "-B0 -n", "-C0 -n", "-C5 -A0", "-A1 -C0 -n", "-B2 -C1 -n", "-A0 -o", "-A0 -c", "-A0 -l", "-2", "-n -1 -B0", "-lL", "-L -l", "-l -L -l", "-hH", "-H -h", "-aI", "-Ia", "-I -a -n",
	} {
		patterns := []string{"two", "^t.o", "(one|five)$", "nothing here", "", "[^a-z]", "é"}
		if need.Race { // what is printed does not show the detector more, and it is slow: each has one of them
			patterns = patterns[i%len(patterns):][:1]
		}
		for _, pattern := range patterns {
			for range each {
				places := grepPlaces[n%len(grepPlaces)]
				n++
				if oddlyGNU(flags, pattern, places) {
					continue
				}
				args := append(strings.Fields(flags), "-e", pattern)
				args = append(args, strings.Fields(places)...)
				want, wanted := gnuGrep(t, path, args)
				got, status := ourGrep(t, args)
				if got != want || status != wanted {
					t.Errorf("grep %q: status %d, want %d\n%s\nwant\n%s", args, status, wanted, clip(got), clip(want))
				}
			}
		}
	}
}

var grepPlaces = []string{
	"a.txt", "a.txt b.c", "a.txt none b.c", "bin", "late empty", "sub/d.txt bin a.txt", "-r .", "-r sub a.txt", "-r", "a.txt sub",
	"-r --include=*.txt", "-r --exclude=*.c sub", "-r a.txt",
}

// oddlyGNU is where GNU grep does not do what it says: it opens nothing where nothing can be selected, tells groups of
// empty matches apart, and of a directory without -r it says that it has no match; and behind a binary file that matches, there
// is a gap in the context.
func oddlyGNU(flags, pattern, places string) bool {
	switch {
	case pattern == "" && (strings.Contains(flags, "v") || strings.Contains(flags, "-A") && strings.Contains(flags, "-o")),
		flags == "-m0" && strings.Contains(places, "none"), places == "a.txt sub" && strings.ContainsAny(flags, "cL0"):
		return true
	}
	return strings.Contains(places, "bin") && (strings.ContainsAny(flags, "ABC") || numbers.MatchString(flags))
}

// numbers is -N in flags.
var numbers = regexp.MustCompile(`(?:^| )-[0-9]`)

func clip(s string) string { return fmt.Sprintf("%.600q", s) }

// grouped sorts the files of an output that goes through directories, whose order is not that of a test.
func grouped(args []string, out string) string {
	if !slices.Contains(args, "-r") {
		return out
	}
	all := strings.SplitAfter(out, "\n")
	slices.SortStableFunc(all, func(a, b string) int {
		if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-h") }) {
			return strings.Compare(a, b)
		}
		return strings.Compare(fileOf(a), fileOf(b))
	})
	return strings.Join(slices.DeleteFunc(all, func(line string) bool { return strings.Contains(line, "--") && !strings.Contains(line, "two") }), "")
}

func fileOf(line string) string {
	if i := strings.IndexAny(line, ":-\n"); i >= 0 {
		return line[:i]
	}
	return line
}

func gnuGrep(t *testing.T, path string, args []string) (string, int) {
	t.Helper()
	return gnuGrepOf(t, path, nil, args)
}

// gnuGrepOf is gnuGrep with a standard input.
func gnuGrepOf(t *testing.T, path string, stdin *os.File, args []string) (string, int) {
	t.Helper()
	if !slices.Contains(args, "-F") {
		args = append([]string{"-E"}, args...)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = []string{"LC_ALL=C", "TERM=xterm"}
	if stdin != nil {
		cmd.Stdin = stdin
	}
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return grouped(args, string(out)), cmd.ProcessState.ExitCode()
}

func ourGrep(t *testing.T, args []string) (string, int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	e := &env{ctx: t.Context(), stdout: &stdout, stderr: &stderr, rand: func(p []byte) { _, _ = rand.Read(p) }} // never fails
	status := run(e, append([]string{"grep"}, args...))
	return grouped(args, stdout.String()), status
}

// TestGrepStdin: what files list is looked for, standard input among them; that is left where GNU grep leaves it.
func TestGrepStdin(t *testing.T) {
	path := gnuPath(t)
	t.Chdir(grepTree(t))
	for name, text := range map[string]string{"p": "two words\n^f", "line": "\n", "none": "", "more": "seven\n\n", "plain": "two\n(a|b\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{
		"-f p a.txt", "-f line a.txt", "-f none a.txt", "-vf none a.txt", "-f more -c a.txt", "-f none -e one a.txt", "-e one -f p a.txt", "-wf p a.txt", "-xf none a.txt", "-F -f plain a.txt b.c",
		"-f - a.txt b.c", "-of - a.txt", "-f - -", "-f gone a.txt", "-f plain a.txt", "-f none -f p a.txt", "-fp a.txt",
		"-m1 two", "-m2 two -", "-m1 -A3 two", "-m9 two", "-m0 two", "-m1 -c two", "-m1 -n nothing", "-m1 -v two", "-m1 two - a.txt", "-c two", "-m2 -b -o two", "-m3 -L two",
	} {
		at := func(grep func(stdin *os.File) (string, int)) string {
			f, err := os.Open("a.txt")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }() // nothing was written
			if _, err = f.Seek(4, io.SeekStart); err != nil {
				t.Fatal(err)
			}
			out, status := grep(f)
			left, err := f.Seek(0, io.SeekCurrent)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%q, status %d, left at %d", out, status, left)
		}
		args := strings.Fields(line)
		want := at(func(stdin *os.File) (string, int) { return gnuGrepOf(t, path, stdin, args) })
		got := at(func(stdin *os.File) (string, int) {
			was := os.Stdin
			defer func() { os.Stdin = was }()
			os.Stdin = stdin
			return ourGrep(t, args)
		})
		if got != want {
			t.Errorf("grep %s: %s; want %s", line, got, want)
		}
	}
}

// TestGrepTimes: whichever file is searched first, the times of events are those at which they are written.
func TestGrepTimes(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("d", 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		text := "two\n"
		if i%20 == 0 {
			text = strings.Repeat("one or the other\n", 200_000) + text
		}
		if err := os.WriteFile(filepath.Join("d", fmt.Sprint(i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, _ := ourGrep(t, []string{"--json", "-r", "two", "d", "gone"})
	last := ""
	n := 0
	for line := range strings.Lines(out) {
		var e struct{ Time string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339Nano, e.Time)
		if err != nil {
			t.Fatal(err)
		}
		if text := at.Format("15:04:05.000000000"); text < last {
			t.Errorf("%s comes after %s: %s", text, last, line)
		} else {
			last = text
		}
		n++
	}
	if n < 60 {
		t.Errorf("%d events", n)
	}
}

// TestGrepArgs: a pattern may begin with a dash, wherever -e stands.
func TestGrepArgs(t *testing.T) {
	for args, want := range map[string]string{
		"-e -x f": "--regexp=-x f", "-ne -x f": "-n --regexp=-x f", "x f -e": "x f -e", "-- -e x": "-- -e x", "-A1 -e x": "-A1 --regexp=x", "--regexp -x": "--regexp=-x",
		"-3 x": "-C3 x", "-A -3": "-A -3", "-n -12 -e -3": "-n -C12 --regexp=-3", "-f -e x": "-f --regexp=x", "-fe x": "-fe x", "-- -3": "-- -3",
	} {
		if got := strings.Join(grepArgs(strings.Fields(args)), " "); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}
