package filter

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestAsRsync copies a tree with rsync, by many sets of rules, and asks the filter for the same.
func TestAsRsync(t *testing.T) {
	need.Speed(t, "one goroutine, beside rsync")
	rsync := need.Tool(t, "rsync", "rsync")
	tree := t.TempDir()
	for _, path := range strings.Fields(`a b.o c/a c/b.o c/d/a c/d/b.o c/d/e/f.txt foo/bar foo/x/bar foo/x/y/bar x/foo/bar
		foo.d/bar bar/foo cache/1 x/Cache/2 x/cache/3 x/y/z/w ab/c abc [x] back\slash star*name -dash é ÿ/é a-b/c x.tmp/keep`) {
		at := filepath.Join(tree, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(path), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, rules := range []string{
		"- *.o", "- a", "- /a", "- c/a", "- /c/a", "- foo/bar", "- /foo/**/bar", "- foo/**/bar", "- **/bar", "- **bar", "- foo/***", "- foo/**",
		"- /foo/***", "- c/", "- */", "+ */\n- *", "+ /c/\n+ /c/d/***\n- *", "+ foo/***\n- /*", "- /*", "- **", "- *", "- ?", "- ??", "- ???", "- c/*/a", "- /*/*/a",
		"- [cC]ache", "- [cC]ache/\n", "- [!x]", "- [^a-c]*", "- [[:upper:]]*", "- [[:alpha:]]", "- []x[]*", `- \[x\]`, `- back\slash`, `- back\\s*`, `- star\*name`,
		"- star[*]name", "- é", "- ?é", "- *tmp*", "+ keep\n- *.tmp/", "- a**b", "- a*b", "- x/**/w", "- x**w", "- **/x/**", "- ***", "- x***", "- /x/y***", "- y/***/w",
		"- f*/x*/b*", "- /**/bar", "- foo/*/", "+ x/y/\n- y/", "- a[/]b", "- c[/]a/b", "- c/[ad]", "- d/e/f.txt", "- **/e/**.txt", "- -dash", "- /c/**/b.o\n+ /c/**\n- *",
	} {
		want, got := copied(t, rsync, tree, rules), ours(t, tree, rules)
		if !slices.Equal(want, got) {
			t.Errorf("%q:\nrsync %q\nours  %q", rules, want, got)
		}
	}
}

// copied is what rsync copies.
func copied(t *testing.T, rsync, tree, rules string) []string {
	t.Helper()
	to, file := t.TempDir(), filepath.Join(t.TempDir(), "rules")
	if err := os.WriteFile(file, []byte(rules+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(rsync, "-r", "--filter=merge "+file, tree+"/", to+"/").CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", rules, err, out)
	}
	return walked(t, to, func(string, fs.DirEntry) bool { return true })
}

// ours is what the filter chooses.
func ours(t *testing.T, tree, rules string) []string {
	t.Helper()
	all, err := ParseRules("rules", strings.NewReader(rules))
	if err != nil {
		t.Fatal(err)
	}
	f := mustNew(t, Options{Rules: all})
	known := make(map[string]any)
	return walked(t, tree, func(path string, d fs.DirEntry) bool {
		e := &vfs.Entry{Name: []byte(d.Name()), Attr: vfs.Attr{Type: vfs.TypeReg}}
		if d.IsDir() {
			e.Attr.Type = vfs.TypeDir
		}
		below, ok := f.Choose(known[filepath.Dir(path)], e)
		known[path] = below
		return ok
	})
}

// walked are the paths below a directory that are taken, sorted.
func walked(t *testing.T, dir string, take func(string, fs.DirEntry) bool) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		switch {
		case err != nil || rel == ".":
			return err
		case take(rel, d):
			all = append(all, rel)
		case d.IsDir():
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}
