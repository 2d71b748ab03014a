package nfsbox_test

import (
	"bytes"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/leak"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// TestMain looks for goroutines of ours when all tests have cleaned up.
func TestMain(m *testing.M) { leak.Main(m) }

// exampleFiles are the files of examples, by folder.
func exampleFiles(t *testing.T) map[string][]string {
	t.Helper()
	found := make(map[string][]string)
	for name := range tree(t) {
		base := filepath.Base(name)
		if strings.HasPrefix(base, "example_") && strings.HasSuffix(base, "_test.go") && !strings.HasPrefix(name, "compare/") {
			found[filepath.Dir(name)] = append(found[filepath.Dir(name)], name)
		}
	}
	if len(found) < 4 {
		t.Fatalf("examples in %v only", slices.Collect(maps.Keys(found)))
	}
	return found
}

// TestExamplesAreForOthers: an example is for those who cannot import what is internal.
func TestExamplesAreForOthers(t *testing.T) {
	for _, files := range exampleFiles(t) {
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range f.Imports {
				if p, err := strconv.Unquote(i.Path.Value); err != nil || strings.Contains(p+"/", "/internal/") {
					t.Errorf("%s imports %s, which other modules cannot", name, i.Path.Value)
				}
			}
		}
	}
}

// TestExamplesOutside builds and runs all examples in a module of their own, which has
// this one as a program elsewhere would, without the network.
func TestExamplesOutside(t *testing.T) {
	need.Speed(t, "what it builds is without it")
	need.Time(t, "the examples in a module of their own")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, files := range exampleFiles(t) {
		for _, name := range files {
			copyTo(t, name, filepath.Join(dir, name))
		}
	}
	copyTo(t, "go.sum", filepath.Join(dir, "go.sum"))
	// The versions are ours, so that nothing has to be looked up.
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(mod), "module "+module, "module example.com/elsewhere", 1) +
		"\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + strconv.Quote(here) + "\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "test", "-count=1", "./...")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("ok")) {
		t.Errorf("%v\n%s", err, out)
	}
}

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
