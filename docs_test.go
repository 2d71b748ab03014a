package nfsbox_test

import (
	"go/build"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tree is all that the repository has, by path, but for what begins with a dot.
func tree(t *testing.T) (files map[string]bool) {
	t.Helper()
	files = make(map[string]bool)
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name != "." && strings.HasPrefix(d.Name(), ".") && d.IsDir() && d.Name() != ".ci" {
			return fs.SkipDir
		}
		files[name] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// pages are the Markdown files among files, and their text.
func pages(t *testing.T, files map[string]bool) map[string]string {
	t.Helper()
	found := make(map[string]string)
	for name := range files {
		if path.Ext(name) != ".md" || strings.HasPrefix(name, "dist/") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found[name] = string(text)
	}
	if len(found) < 10 {
		t.Fatalf("only %d pages", len(found))
	}
	return found
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	noSlug  = regexp.MustCompile(`[^a-z0-9_ -]`)
	// block is code that stands in lines of its own.
	block = regexp.MustCompile("(?ms)^```.*?^```$|^    [^\n]*$")
	// where is a path, with a folder or the ending of a file; what a name of a package.
	where = regexp.MustCompile(`^(?:\./)?([a-z.][\w.]*(?:/(?:[a-z_0-9*-][\w*-]*|[\w-]+\.[a-z]+))+/?|[a-z]\w*\.(?:go|md))$`)
	what  = regexp.MustCompile(`^((?:[a-z]\w*/)*[a-z]\w*)\.[A-Z]\w*`)
)

// anchors are the names under which a browser knows the headings of a page.
func anchors(page string) (list []string) {
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		list = append(list, strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return list
}

// TestArchitectureDocsLinks: a link of a page to another, or to code, leads somewhere.
func TestArchitectureDocsLinks(t *testing.T) {
	files := tree(t)
	all := pages(t, files)
	for name, text := range all {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], ":") {
				continue // elsewhere
			}
			to, anchor, _ := strings.Cut(m[1], "#")
			if to = path.Join(path.Dir(name), to); to == path.Dir(name) && anchor != "" {
				to = name
			}
			if !files[to] {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			} else if anchor != "" && !slices.Contains(anchors(all[to]), anchor) {
				t.Errorf("%s links to %s, and %s has no such heading", name, m[1], to)
			}
		}
	}
}

// TestArchitectureDocsNames: a room, a file or a package that a page names is there. What
// is meant may stand anywhere: `v3/read.go` is each that ends so.
func TestArchitectureDocsNames(t *testing.T) {
	files := tree(t)
	ends := make(map[string]bool) // of all paths, from a slash on
	for name := range files {
		for ends[name] = true; strings.Contains(name, "/"); ends[name] = true {
			_, name, _ = strings.Cut(name, "/")
		}
	}
	there := func(name string) bool {
		if ends[name] || ends["compare/"+name] || strings.Contains(name, "/") && isOther(name) {
			return true
		}
		for _, dir := range []string{"", "io"} { // what is known as fs is io/fs
			if _, err := os.Stat(filepath.Join(build.Default.GOROOT, "src", dir, name)); err == nil {
				return true
			}
		}
		return false
	}
	n := 0
	for page, text := range pages(t, files) {
		if page == "CHANGELOG.md" || strings.HasPrefix(page, "docs/decisions/") {
			continue // they name what has gone, too
		}
		for _, span := range names(block.ReplaceAllString(text, "")) {
			m := where.FindStringSubmatch(span)
			if m == nil {
				m = what.FindStringSubmatch(span)
			}
			if m == nil || strings.HasPrefix(span, "../") {
				continue
			}
			n++
			if name := strings.TrimSuffix(strings.TrimSuffix(m[1], "*"), "/"); !there(name) {
				t.Errorf("%s names %s, which is not there", page, span)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d names were found", n)
	}
}

// TestSiteHasEachPage: the site's table of contents names every page of docs/; without
// that, the site is not built.
func TestSiteHasEachPage(t *testing.T) {
	contents, err := os.ReadFile("packaging/site/mkdocs.yml")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for page := range tree(t) {
		dir, name := path.Split(page)
		if dir != "docs/" || path.Ext(name) != ".md" {
			continue
		}
		n++
		if !strings.Contains(string(contents), "- "+name+"\n") {
			t.Errorf("packaging/site/mkdocs.yml does not name %s", page)
		}
	}
	if n < 10 {
		t.Errorf("only %d pages were found", n)
	}
}

var (
	goCommand = regexp.MustCompile(`\bgo (?:test|run|vet|build) [^\n|;&` + "`" + `]*`)
	goRun     = regexp.MustCompile(`-run[ =](\S+)`)
	testFunc  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)`)
)

// TestArchitectureDocsCommands: the folders that the pages give to go are there, and so are
// the tests that they run.
func TestArchitectureDocsCommands(t *testing.T) {
	files := tree(t)
	n := 0
	for page, text := range pages(t, files) {
		for _, command := range goCommand.FindAllString(text, -1) {
			command, _, _ = strings.Cut(command, " #")
			for word := range strings.FieldsSeq(command) {
				dir, ok := strings.CutPrefix(word, "./")
				if !ok || strings.HasSuffix(dir, "...") {
					continue
				}
				n++
				dir = strings.Trim(dir, ".,:)")
				if !files[dir] && !files["compare/"+dir] {
					t.Errorf("%s says %q, and there is no %s", page, command, dir)
				} else if m := goRun.FindStringSubmatch(command); m != nil && !hasTest(t, dir, m[1]) {
					t.Errorf("%s says %q, and no test there is called so", page, command)
				}
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d folders were found", n)
	}
}

// hasTest reports whether a folder has a test that -run pattern runs.
func hasTest(t *testing.T, dir, pattern string) bool {
	t.Helper()
	run, err := regexp.Compile(strings.Trim(pattern, "'\""))
	if err != nil {
		t.Fatal(err)
	}
	list, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	tests := make(map[string]bool)
	for _, name := range list {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
	}
	return slices.ContainsFunc(slices.Collect(maps.Keys(tests)), run.MatchString)
}
