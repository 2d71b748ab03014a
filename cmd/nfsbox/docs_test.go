package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	codeBlock = regexp.MustCompile("(?ms)^```.*?^```$|^    [^\n]*(?:\n    [^\n]*)*$")
	codeSpan  = regexp.MustCompile("`(nfsbox [^`]+)`")
	comment   = regexp.MustCompile(`\s#.*`)
	shellWord = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)
	// ended is what ends a command within a line of a shell.
	ended = regexp.MustCompile(`^(?:[|;&]+|>.*|2>.*)$`)
	// saidByOther is what another command says; every flag that takes one takes a number.
	saidByOther = regexp.MustCompile(`\$\([^)]*\)`)
	// image is what podman takes before the command's own arguments.
	image = regexp.MustCompile(`^podman run .* nfsbox (.*)$`)
)

// commands are the lines of a page's code in which nfsbox is called.
func commands(page string) (list []string) {
	for _, b := range codeBlock.FindAllString(page, -1) {
		b = strings.ReplaceAll(b, "\\\n", " ")
		for line := range strings.Lines(b) {
			line = strings.TrimSpace(comment.ReplaceAllString(line, ""))
			line = strings.TrimPrefix(line, "$ ")
			if args, ok := strings.CutPrefix(line, "nfsbox "); ok {
				list = append(list, args)
			} else if m := image.FindStringSubmatch(line); m != nil {
				list = append(list, m[1])
			}
		}
	}
	return list
}

// shellWords are the arguments that a shell would make of a line, up to a pipe or the like.
func shellWords(line string) (args []string) {
	for _, w := range shellWord.FindAllString(saidByOther.ReplaceAllString(line, "1"), -1) {
		if ended.MatchString(w) {
			break
		}
		args = append(args, strings.NewReplacer(`'`, "", `"`, "").Replace(w))
	}
	return args
}

// TestDocsCommands: every command that the pages show parses. A command that the text
// merely mentions is one that there is.
func TestDocsCommands(t *testing.T) {
	n := 0
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/*/*.md"} {
		list, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range list {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range commands(string(text)) {
				n++
				parse(t, page, shellWords(line))
			}
			for _, m := range codeSpan.FindAllStringSubmatch(codeBlock.ReplaceAllString(string(text), ""), -1) {
				n++
				parse(t, page, []string{strings.Fields(m[1])[1], "--help"})
			}
		}
	}
	if n < 60 {
		t.Errorf("only %d commands were found", n)
	}
}

func parse(t *testing.T, page string, args []string) {
	t.Helper()
	var out bytes.Buffer
	words := customary(args)
	parser, exited, err := newParser(&env{ctx: t.Context(), stdout: &out, stderr: &out}, new(resolver), words)
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(words)
	if err != nil && !*exited && !errors.Is(err, fs.ErrNotExist) { // the directories of examples are elsewhere
		t.Errorf("%s: nfsbox %s: %v", page, strings.Join(args, " "), err)
	}
}

// TestDocsCommandsAreFound knows what it looks for.
func TestDocsCommandsAreFound(t *testing.T) {
	const page = "Text.\n\n    nfsbox ls -l nfs://h/e  # says what is there\n    $ nfsbox cat 'a b' | jq .\n\n" +
		"```\nnfsbox bench getattr nfs://h/e \\\n  -c 8 >out\npodman run -v x:/y nfsbox doctor nfs://h/\nnot nfsbox\n```\n"
	want := [][]string{{"ls", "-l", "nfs://h/e"}, {"cat", "a b"}, {"bench", "getattr", "nfs://h/e", "-c", "8"}, {"doctor", "nfs://h/"}}
	found := commands(page)
	if len(found) != len(want) {
		t.Fatalf("%q", found)
	}
	for i, line := range found {
		if got := shellWords(line); strings.Join(got, "\x00") != strings.Join(want[i], "\x00") {
			t.Errorf("%q, want %q", got, want[i])
		}
	}
}

// TestDocsBackupUnit: the page on backups has the example of a unit as it is, and what that runs parses.
func TestDocsBackupUnit(t *testing.T) {
	page, err := os.ReadFile("../../docs/backup.md")
	if err != nil {
		t.Fatal(err)
	}
	unit, err := os.ReadFile("../../packaging/examples/nfsbox-backup.service")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), string(unit)) {
		t.Error("docs/backup.md has another unit than packaging/examples")
	}
	n := 0
	for line := range strings.Lines(string(unit)) {
		if args, ok := strings.CutPrefix(line, "ExecStart=/usr/bin/nfsbox snapshots "); ok {
			n++
			parse(t, "nfsbox-backup.service", append([]string{"snapshots"}, strings.Fields(args)...))
		}
	}
	if n < 2 {
		t.Errorf("only %d commands were found", n)
	}
}

// TestDocsFromRestic runs the commands of the table for users of restic, one after the other, but for the mount: it parses.
func TestDocsFromRestic(t *testing.T) {
	page, err := os.ReadFile("../../docs/backup.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Coming from restic\n")
	table, _, _ = strings.Cut(table, "\n## ")
	dir := t.TempDir()
	home, etc := filepath.Join(dir, "tree"), filepath.Join(dir, "other")
	todo, extra := filepath.Join(home, "ann/todo.txt"), filepath.Join(home, "extra")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(home, "ann/letters"), 0o755), os.Mkdir(etc, 0o755), os.WriteFile(todo, []byte("todo"), 0o644), os.WriteFile(filepath.Join(etc, "hosts"), nil, 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	here := strings.NewReplacer("/home", home, "/etc", etc, "/backup", filepath.Join(dir, "store"), "./letters", filepath.Join(dir, "letters"))
	n := 0
	for _, m := range regexp.MustCompile("(?m)^\\| ([^|]*) \\| `nfsbox ([^`]*)` \\|").FindAllStringSubmatch(table, -1) {
		n++
		args := shellWords(here.Replace(m[2]))
		switch m[1] {
		case "mount":
			parse(t, "docs/backup.md", args)
			continue
		case "restore latest":
			err = os.Remove(todo)
		case "restore latest --delete":
			err = os.WriteFile(extra, nil, 0o644)
		}
		out, said := ask(t, exitOK, args...)
		if err != nil || m[1] == "dump latest" && out != "todo" {
			t.Errorf("%q: %v, %s\n%s", args, err, out, said)
		}
		_, gone := os.Lstat(todo)
		if _, stays := os.Lstat(extra); gone != nil || stays == nil {
			t.Errorf("after %q: %v, and what was not backed up is there: %v", args, gone, stays == nil)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "letters")); err != nil || n < 12 {
		t.Errorf("%d commands: %v", n, err)
	}
}
