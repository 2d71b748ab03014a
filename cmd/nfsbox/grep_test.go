package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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

// TestGrepAgainstGNU: with the same arguments the same lines, in each file in the same order, and the same exit status.
func TestGrepAgainstGNU(t *testing.T) {
	path, err := exec.LookPath("grep")
	if err != nil {
		t.Skip("NOT TESTED: there is no grep")
	}
	if out, err := exec.Command(path, "--version").Output(); err != nil || !bytes.Contains(out, []byte("GNU grep")) {
		t.Skip("NOT TESTED: grep is not GNU's")
	}
	t.Chdir(grepTree(t))
	each := 3
	if testing.Short() {
		each = 1
	}
	n := 0
	for _, flags := range []string{
		"", "-n", "-b", "-nb", "-c", "-v", "-vc", "-w", "-x", "-i", "-F", "-o", "-ob", "-ov", "-on", "-l", "-L", "-lc", "-Lv", "-q", "-qv", "-s", "-m1", "-m2 -c", "-m0", "-m1 -A3",
		"-A1", "-B2 -n", "-C1", "-C1 -m1", "-A1 -B1 -v -n", "-H", "-h", "-hn", "-a", "-ac", "-I", "-Ic", "-A1 -o", "--color=always", "--color=always -no", "--color=always -A1 -n",
		"--color=always -v -A1", "--color=always -c", "--color=always -l", "-c -H", "-w -o -b", "-x -n -v", "-Iv -A2", "-la", "-ni -C1 -b",
	} {
		for _, pattern := range []string{"two", "^t.o", "(one|five)$", "nothing here", "", "[^a-z]", "é"} {
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

// oddlyGNU is where GNU grep does not do what it says: it opens nothing where nothing can be selected, and of a directory
// without -r it says that it has no match; and behind a binary file that matches, there is a gap in the context.
func oddlyGNU(flags, pattern, places string) bool {
	return pattern == "" && strings.Contains(flags, "v") || flags == "-m0" && strings.Contains(places, "none") || places == "a.txt sub" && strings.ContainsAny(flags, "cL0") ||
		strings.Contains(places, "bin") && strings.ContainsAny(flags, "ABC")
}

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
	if !slices.Contains(args, "-F") {
		args = append([]string{"-E"}, args...)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = []string{"LC_ALL=C", "TERM=xterm"}
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

// TestGrepArgs: a pattern may begin with a dash, wherever -e stands.
func TestGrepArgs(t *testing.T) {
	for args, want := range map[string]string{
		"-e -x f": "--regexp=-x f", "-ne -x f": "-n --regexp=-x f", "x f -e": "x f -e", "-- -e x": "-- -e x", "-A1 -e x": "-A1 --regexp=x", "--regexp -x": "--regexp=-x",
	} {
		if got := strings.Join(grepArgs(strings.Fields(args)), " "); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}
