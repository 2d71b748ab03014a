// Package layers holds the files of a package to an order. In a circle of files, none can be read before the others.
package layers

import (
	"errors"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Hold holds the files of the package in the working directory, as a test has it, to layers. Those are lines, from the
// ground up, of names of files without ".go" and without the suffix for their systems. A file may use what files of the lines
// above its own declare, and nothing of its own line. uses is how many such uses there are at least: with fewer, the test
// does not see the package.
func Hold(t *testing.T, layers string, uses int) {
	t.Helper()
	floor := make(map[string]int)
	for i, line := range strings.Split(layers, "\n") {
		for _, name := range strings.Fields(line) {
			floor[name] = i + 1
		}
	}
	fset := token.NewFileSet()
	files := read(t, fset)
	for _, f := range files {
		if name := base(fset, f.Package); floor[name] == 0 {
			t.Errorf("%s.go stands in no layer", name)
		}
	}
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	check := types.Config{Importer: nothing{}, FakeImportC: true, Error: func(error) {}}
	pkg, _ := check.Check("p", fset, files, info) // the imports are missing: that is no matter
	n := 0
	for id, o := range info.Uses {
		from, to := base(fset, id.Pos()), base(fset, o.Pos())
		if !declared(o, pkg) || from == to {
			continue
		}
		n++
		if floor[to] >= floor[from] {
			t.Errorf("%v: %s knows %s of %s, which is not below it", fset.Position(id.Pos()), from, o.Name(), to)
		}
	}
	if n < uses {
		t.Errorf("only %d uses were found: the test does not see the package", n)
	}
}

// read parses the files that are built on this system.
func read(t *testing.T, fset *token.FileSet) (files []*ast.File) {
	t.Helper()
	dir, err := build.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range dir.GoFiles {
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

var system = regexp.MustCompile(`_(linux|unix|other|race)$|$`)

// base is a file's name without the suffix for its systems.
func base(fset *token.FileSet, p token.Pos) string {
	name := strings.TrimSuffix(filepath.Base(fset.Position(p).Filename), ".go")
	return name[:system.FindStringIndex(name)[0]]
}

// nothing imports no package: names of other packages do not matter here.
type nothing struct{}

func (nothing) Import(string) (*types.Package, error) { return nil, errors.New("not read") }

// declared reports whether o is what a file of pkg declares for others: a name of the
// package, a method or a field.
func declared(o types.Object, pkg *types.Package) bool {
	if o.Pkg() != pkg || !o.Pos().IsValid() {
		return false
	}
	switch o := o.(type) {
	case *types.Var:
		return o.IsField() || o.Parent() == pkg.Scope()
	case *types.Func:
		return true
	case *types.TypeName, *types.Const:
		return o.Parent() == pkg.Scope()
	}
	return false
}
