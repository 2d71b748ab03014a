package oncrpc_test

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

// layers are the files, from the ground up: a file knows only those of the lines above
// its own. The connection of a client (conn*.go) knows nothing of the client's policy
// (client*.go), and neither knows the server. Files of one line do not know each other.
const layers = `
doc bounds stats
errors
record batch auth share
message
conn
conn_end
conn_send conn_reply
conn_lead
client
client_notes
client_retry
client_conns
client_tick
client_join
client_call

server
server_reply
server_stats
server_call server_conn
server_work server_conns
server_read server_packet
server_life
`

var system = regexp.MustCompile(`_(linux|unix|other|race)$|$`)

// base is a file's name without the suffix for its systems.
func base(fset *token.FileSet, p token.Pos) string {
	name := strings.TrimSuffix(filepath.Base(fset.Position(p).Filename), ".go")
	return name[:system.FindStringIndex(name)[0]]
}

// nothing imports no package: names of other packages do not matter here.
type nothing struct{}

func (nothing) Import(string) (*types.Package, error) { return nil, errors.New("not read") }

// TestLayers holds the files to layers.
func TestLayers(t *testing.T) {
	floor := make(map[string]int)
	for i, line := range strings.Split(layers, "\n") {
		for _, name := range strings.Fields(line) {
			floor[name] = i
		}
	}
	dir, err := build.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range dir.GoFiles {
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if name := base(fset, f.Package); floor[name] == 0 {
			t.Errorf("%s.go stands in no layer", name)
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	check := types.Config{Importer: nothing{}, Error: func(error) {}}
	pkg, _ := check.Check("oncrpc", fset, files, info) // the imports are missing: that is no matter
	arrows := 0
	for id, o := range info.Uses {
		if !declared(o, pkg) {
			continue
		}
		from, to := base(fset, id.Pos()), base(fset, o.Pos())
		if from == to {
			continue
		}
		arrows++
		if floor[to] >= floor[from] {
			t.Errorf("%v: %s knows %s of %s, which is not below it", fset.Position(id.Pos()), from, o.Name(), to)
		}
	}
	if arrows < 1000 {
		t.Errorf("only %d uses were found: the test sees nothing", arrows)
	}
}

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
