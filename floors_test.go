package nfsbox_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pkg is what these tests read of go list -json.
type pkg struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
	Deps       []string

	TestImports, XTestImports []string
}

// list are our packages as they are on some systems.
func list(t *testing.T, systems ...string) (all []pkg) {
	t.Helper()
	for _, goos := range systems {
		cmd := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports,Deps,TestImports,XTestImports", "./...")
		cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			var p pkg
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
	}
	return all
}

func theMap(t *testing.T) *floorMap {
	t.Helper()
	page, err := os.ReadFile(mapPage)
	if err != nil {
		t.Fatal(err)
	}
	m, err := readMap(string(page))
	if err != nil {
		t.Fatalf("%s: %v", mapPage, err)
	}
	return m
}

func report(t *testing.T, faults []string) {
	t.Helper()
	for _, f := range faults {
		t.Error(f)
	}
}

// TestFloors holds every package to the map: imports point down, and go where the
// package's room may go. An import that the map has and the code has not is a fault, too.
func TestFloors(t *testing.T) {
	m := theMap(t)
	report(t, m.checkMap())
	report(t, m.checkOrder())
	report(t, m.checkImports(list(t, "linux", "darwin", "windows")))
}

// TestFloorsOutsider: what tries the command shares no code with it, tests included.
func TestFloorsOutsider(t *testing.T) {
	const outsider = module + "/conformance/outsider"
	n := 0
	for _, p := range list(t, "linux") {
		if p.ImportPath != outsider {
			continue
		}
		for _, imp := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			n++
			if _, own := ours(imp); own && imp != outsider || isOther(imp) {
				t.Errorf("conformance/outsider imports %s: it has the standard library alone", imp)
			}
		}
	}
	if n == 0 {
		t.Error("conformance/outsider imports nothing: where have its tests gone?")
	}
}

// TestWings: wings import each other as the map says, and none holds more than a third
// of the lines.
func TestWings(t *testing.T) {
	all := list(t, "linux")
	report(t, theMap(t).checkWings(all))
	lines, sum := make(map[string]int), 0
	for _, p := range all {
		n := p.lines(t)
		sum += n
		if wing, ok := wingOf(p.ImportPath); ok {
			lines[wing] += n
		}
	}
	for wing, n := range lines {
		if 3*n > sum {
			t.Errorf("internal/%s has %d of %d lines: divide it", wing, n, sum)
		}
	}
}

// lines counts those of a package's files, without its tests.
func (p *pkg) lines(t *testing.T) (n int) {
	for _, name := range p.GoFiles {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		n += strings.Count(string(text), "\n")
	}
	return n
}

// TestBudget: a program that embeds a room takes on no one else's code.
func TestBudget(t *testing.T) {
	report(t, theMap(t).checkEmbedded(list(t, "linux", "darwin", "windows")))
}
