package nfsbox_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// generated is the line by which Go's tools know a file that nobody writes.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// cgoLine is a line for the compiler of C, which stands in a comment above import "C".
var cgoLine = regexp.MustCompile(`^// #(cgo|include) `)

// sources are the files of Go among all, and their text, but for compare and for input of
// tests.
func sources(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	for name := range tree(t) {
		if path.Ext(name) != ".go" || strings.HasPrefix(name, "compare/") || strings.Contains(name, "testdata/") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found[name] = string(text)
	}
	return found
}

// undocumented are the exported names of a file that have no comment of their own: types,
// functions, methods, and constants and variables, of which a group may have one together.
// Methods count if their type is exported.
func undocumented(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			of := receiver(d)
			if d.Name.IsExported() && d.Doc == nil && (of == "" || ast.IsExported(of)) {
				names = append(names, strings.TrimPrefix(of+"."+d.Name.Name, "."))
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				names = append(names, bare(d, s)...)
			}
		}
	}
	return names
}

// bare are the exported names of a declaration's line, if neither has a comment.
func bare(d *ast.GenDecl, s ast.Spec) (names []string) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
			names = append(names, s.Name.Name)
		}
	case *ast.ValueSpec:
		for _, n := range s.Names {
			if n.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
				names = append(names, n.Name)
			}
		}
	}
	return names
}

// receiver is the name of the type that d is a method of; empty for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// TestArchitectureDocsExported: every exported name has a comment, in every package, and
// every package has one that begins with its name.
func TestArchitectureDocsExported(t *testing.T) {
	said, dirs := make(map[string]bool), make(map[string]bool)
	n := 0
	for name, text := range sources(t) {
		if strings.HasSuffix(name, "_test.go") || generated.MatchString(text) {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		n++
		dirs[path.Dir(name)] = true
		want := "Package " + f.Name.Name
		if f.Name.Name == "main" {
			want = "Command " + path.Base(path.Dir(name))
		}
		if strings.HasPrefix(f.Doc.Text(), want+" ") {
			said[path.Dir(name)] = true
		}
		for _, what := range undocumented(f) {
			t.Errorf("%s: %s has no comment", name, what)
		}
	}
	for dir := range dirs {
		if !said[dir] {
			t.Errorf("%s has no package comment that begins with its name", dir)
		}
	}
	if n < 500 {
		t.Errorf("only %d files were found", n)
	}
}

// strayHeading is the first line of a comment that a number sign makes a heading though it
// is not alone: one that was broken in front of it.
func strayHeading(group []string) string {
	for i, line := range group {
		if !strings.HasPrefix(line, "// #") && !strings.HasPrefix(line, "//#") || cgoLine.MatchString(line) {
			continue
		}
		alone := (i == 0 || group[i-1] == "//") && (i+1 == len(group) || group[i+1] == "//")
		if !alone || !strings.HasPrefix(line, "// # ") {
			return line
		}
	}
	return ""
}

// TestArchitectureDocsHeadings: no comment has a line that begins with a number sign, unless
// it is a heading. gofmt leaves such a line alone.
func TestArchitectureDocsHeadings(t *testing.T) {
	for _, c := range []struct {
		group string
		stray bool
	}{
		{"// A.\n//\n// # Title\n//\n// B.", false},
		{"// # Title\n//\n// B.", false},
		{"// see issue\n// #7 of it", true},
		{"// see issue\n// # 7 of it", true},
		{"// A.\n//\n// #Title\n//\n// B.", true},
	} {
		if got := strayHeading(strings.Split(c.group, "\n")); (got != "") != c.stray {
			t.Errorf("%q: %q", c.group, got)
		}
	}
	for name, text := range sources(t) {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range f.Comments {
			var lines []string
			for _, c := range g.List {
				lines = append(lines, c.Text)
			}
			if line := strayHeading(lines); line != "" {
				t.Errorf("%s: %q begins with a number sign by accident", name, line)
			}
		}
	}
}

// TestArchitectureDocsFigures: each row of figures that README shows is in
// docs/performance.md, so that the two cannot disagree.
func TestArchitectureDocsFigures(t *testing.T) {
	all := pages(t, tree(t))
	n := 0
	for line := range strings.Lines(all["README.md"]) {
		if !strings.HasPrefix(line, "| ") || !strings.Contains(line, " us") {
			continue
		}
		n++
		if !strings.Contains(all["docs/performance.md"], line) {
			t.Errorf("README has %q, and docs/performance.md has not", line)
		}
	}
	if n == 0 {
		t.Error("README has no table of figures")
	}
}
