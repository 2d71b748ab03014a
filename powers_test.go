package nfsbox_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mayUnwrap are the files that look below a wrapper by themselves.
var mayUnwrap = map[string]string{
	"vfs/powers.go":                 "this is vfs.As",
	"internal/tools/bench/mount.go": "it measures what stands below the wrappers",
}

// optional are the interfaces of package vfs that are found by vfs.As, and the
// methods that each has.
func optional(t *testing.T) (names, methods []string) {
	t.Helper()
	files, err := filepath.Glob("vfs/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			d, ok := n.(*ast.TypeSpec)
			if !ok || !d.Name.IsExported() || d.Name.Name == "FS" || d.Name.Name == "File" {
				return true
			}
			if i, ok := d.Type.(*ast.InterfaceType); ok {
				names = append(names, d.Name.Name)
				if names := methodsOf(i); names[0] != "Close" && names[0] != "Unwrap" { // which many things have
					methods = append(methods, names...)
				}
			}
			return true
		})
	}
	for _, want := range []string{"Syncer", "HoleSeeker", "Unwrapper", "Holder"} {
		if !slices.Contains(names, want) {
			t.Fatalf("package vfs has the powers %q: where is %s?", names, want)
		}
	}
	return names, methods
}

func methodsOf(i *ast.InterfaceType) (names []string) {
	for _, m := range i.Methods.List {
		for _, n := range m.Names {
			names = append(names, n.Name)
		}
	}
	return names
}

// TestPowersAreAskedFor finds every type assertion and type switch that names a
// power of package vfs, or one of its methods: it would take a wrapper's methods
// for what the whole stack can do, or not find the power through a wrapper.
func TestPowersAreAskedFor(t *testing.T) {
	names, methods := optional(t)
	n := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || path != "." && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || mayUnwrap[path] != "" {
			return nil
		}
		n++
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, at := range assertions(f, names, methods) {
			t.Errorf("%s asserts to a power: vfs.As finds it, if the stack has it", set.Position(at))
		}
		return nil
	})
	if err != nil || n < 500 {
		t.Fatalf("looked at %d files: %v", n, err)
	}
}

// TestAssertionsAreFound knows what it looks for.
func TestAssertionsAreFound(t *testing.T) {
	const source = `package p

import ("io"; v "github.com/nfsbox/nfsbox/vfs"; "github.com/nfsbox/nfsbox")

func f(x any) {
	_ = x.(v.Syncer)
	_, _ = x.(nfsbox.ACLer)
	_ = x.(interface{ NextHole() })
	switch x.(type) {
	case int, v.Watcher:
	}
	_ = x.(io.Closer)
	_ = x.(v.FS)
	_ = x.(interface{ Unwrap() []error })
	_, _ = v.As[v.Syncer](x)
	var _ v.Syncer = nil
}`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names, methods := optional(t)
	if at := assertions(f, names, methods); len(at) != 4 {
		t.Errorf("%d are found, want 4", len(at))
	}
}

// assertions are the places where f asserts to a power.
func assertions(f *ast.File, names, methods []string) (at []token.Pos) {
	named := func(e ast.Expr) bool {
		switch x := e.(type) {
		case *ast.SelectorExpr: // vfs.Syncer, or another package's name for it
			return slices.Contains(names, x.Sel.Name) && isVFS(f, x.X)
		case *ast.Ident:
			return f.Name.Name == "vfs" && slices.Contains(names, x.Name)
		case *ast.InterfaceType:
			return slices.ContainsFunc(methodsOf(x), func(m string) bool { return slices.Contains(methods, m) })
		}
		return false
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.TypeAssertExpr:
			if x.Type != nil && named(x.Type) {
				at = append(at, x.Pos())
			}
		case *ast.TypeSwitchStmt:
			for _, c := range x.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					if named(e) {
						at = append(at, e.Pos())
					}
				}
			}
		}
		return true
	})
	return at
}

// isVFS reports whether e names package vfs, or the root, which has other names for
// its powers.
func isVFS(f *ast.File, e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	if !ok {
		return false
	}
	for _, imp := range f.Imports {
		path := strings.Trim(imp.Path.Value, `"`)
		name := path[strings.LastIndex(path, "/")+1:]
		if imp.Name != nil {
			name = imp.Name.Name
		}
		if name == id.Name {
			return path == module+"/vfs" || path == module
		}
	}
	return false
}

// TestPassersOnlyPass: a wrapper that is passed by (vfs.Passer) has no answer of its own to what
// vfs.Asked says is asked past it.
func TestPassersOnlyPass(t *testing.T) {
	asked := []string{"Root", "GetAttr", "Access", "Lookup", "Readlink", "ReadDir"}
	passers := 0
	for _, dir := range goDirs(t) {
		methods := make(map[string][]string) // of the types of one package
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				if m, ok := d.(*ast.FuncDecl); ok && m.Recv != nil && !strings.HasSuffix(name, "_test.go") {
					of := receiver(m)
					methods[of] = append(methods[of], m.Name.Name)
				}
			}
		}
		for of, has := range methods {
			if !slices.Contains(has, "Asked") {
				continue
			}
			passers++
			for _, m := range asked {
				if slices.Contains(has, m) {
					t.Errorf("%s: %s.%s is passed by: Asked leads past it", dir, of, m)
				}
			}
		}
	}
	if passers < 3 {
		t.Errorf("found %d types with Asked: nlm, cache and readahead have it", passers)
	}
}

// goDirs are the directories of the module.
func goDirs(t *testing.T) (dirs []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == "testdata" || path != "." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		dirs = append(dirs, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}
