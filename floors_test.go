package nfsbox_test

import (
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

const module = "github.com/nfsbox/nfsbox"

// room is a package, or the packages below a folder, and all of ours that it
// may import. The same rules stand in .golangci.yml, for direct imports.
type room struct {
	path  string // below the module; ending in "/": everything in that folder
	floor int
	may   []string // of ours; ending in "/": everything in that folder
}

// rooms are the floors of docs/architecture.md, from the ground up.
var rooms = []room{
	{"vfs", 0, nil},
	{"xdr", 1, nil},
	{"internal/base/bufpool", 1, nil},
	{"internal/tools/progress", 1, nil},
	{"internal/base/metric", 1, nil},
	{"internal/client/pace", 1, nil},
	{"internal/server/iogate", 1, nil},
	{"internal/base/byterange", 1, nil},
	{"internal/testkit/need", 1, nil},
	{"internal/testkit/leak", 1, nil},
	{"internal/testkit/ganesha", 1, nil},
	{"internal/base/posixacl", 1, []string{"vfs"}},
	{"internal/server/object", 1, nil},
	{"internal/server/object/dir", 2, []string{"internal/server/object"}},
	{"internal/server/object/objecttest", 2, []string{"internal/server/object"}},
	{"internal/tools/manual", 1, nil},
	{"internal/server/sockdiag", 1, nil},
	{"internal/server/crowd", 1, nil},

	{"oncrpc", 2, []string{"xdr", "internal/base/bufpool", "internal/base/metric"}},
	{"oncrpc/replycache", 3, []string{"oncrpc"}},
	{"export", 2, []string{"vfs"}},
	{"export/exporttest", 3, []string{"export", "vfs"}},
	{"vfs/vfstest", 3, []string{"vfs", "internal/testkit/memfs"}},
	{"vfs/iofs", 2, []string{"vfs"}},
	{"proto/nfs3", 2, []string{"xdr", "vfs"}},
	{"proto/fileapi", 2, nil},
	{"proto/", 2, []string{"xdr"}},
	{"internal/server/reqlog", 2, nil},
	{"internal/server/view", 2, []string{"internal/base/metric"}},
	{"internal/tools/top", 3, []string{"internal/server/view", "internal/tools/progress"}},
	{"fileapi", 3, []string{"proto/fileapi", "vfs"}},
	{"internal/server/fileapi", 3, []string{"proto/fileapi", "export", "vfs", "internal/server/object", "internal/base/metric", "internal/base/bufpool", "internal/server/crowd"}},
	{"internal/tools/dirfs", 2, []string{"vfs", "internal/base/posixacl"}},
	{"internal/server/localfs", 2, []string{"vfs", "internal/base/bufpool", "internal/server/iogate", "internal/base/byterange", "internal/base/posixacl"}},
	{"internal/testkit/memfs", 2, []string{"vfs", "internal/base/byterange", "internal/base/posixacl"}},
	{"internal/client/writeback", 2, []string{"vfs", "internal/base/bufpool"}},
	{"internal/tools/walk", 2, []string{"vfs", "internal/base/bufpool"}},
	{"internal/tools/transfer", 2, []string{"vfs", "internal/base/bufpool"}},
	{"internal/testkit/sim", 2, []string{"vfs"}},

	{"internal/client/localio/session", 3, []string{"proto/", "xdr"}},
	{"internal/client/localio", 4, []string{"internal/client/localio/session", "proto/", "xdr", "vfs", "internal/base/bufpool", "internal/base/metric"}},
	{"nfsserver/", 4, []string{"oncrpc", "oncrpc/replycache", "xdr", "vfs", "export", "proto/", "internal/client/localio/session", "internal/base/bufpool", "internal/base/metric", "internal/base/byterange", "nfsserver/"}},
	{"internal/client/nfsclient/", 3, []string{"oncrpc", "xdr", "vfs", "proto/", "internal/base/bufpool", "internal/base/metric", "internal/client/pace", "internal/client/nfsclient/"}},
	{"internal/testkit/sim/rpcfault", 3, []string{"oncrpc", "xdr", "proto/", "internal/testkit/sim"}},
	{"internal/testkit/v3suite", 3, []string{"oncrpc", "xdr", "proto/"}},
	{"internal/tools/job", 3, []string{"internal/tools/walk", "internal/tools/transfer", "internal/tools/progress", "internal/base/bufpool", "vfs"}},

	{"", 5, []string{"internal/client/nfsclient/", "internal/client/localio", "internal/client/writeback", "internal/base/metric", "internal/client/pace", "oncrpc", "vfs", "vfs/iofs"}},
	{"internal/tools/place", 6, []string{"", "internal/tools/dirfs", "vfs"}},
	{"internal/tools/bench", 7, []string{"", "fileapi", "oncrpc", "internal/base/metric", "internal/tools/progress", "proto/", "xdr", "vfs"}},
	{"internal/server/daemon", 7, []string{"internal/tools/place", "internal/server/sockdiag", "internal/server/crowd", "nfsserver/", "export", "internal/server/localfs", "internal/server/iogate", "internal/base/metric", "internal/server/view", "internal/server/reqlog", "internal/server/fileapi", "internal/server/object", "internal/server/object/dir", "oncrpc", "oncrpc/replycache", "vfs"}},
	{"cmd/nfsbox", 8, []string{"internal/tools/top", "internal/server/view", "internal/tools/manual", "internal/tools/place", "internal/server/daemon", "internal/tools/bench", "internal/tools/job", "internal/tools/progress", "internal/tools/walk", "internal/base/bufpool", "internal/base/metric", "vfs", ""}},
	{"conformance/outsider", 8, nil},
	{"conformance/", 8, []string{"conformance/"}},
	{"cmd/xdrgen/", 8, []string{"cmd/xdrgen/"}},
	{"packaging", 8, nil},
	{"internal/testkit/integration/", 8, nil},
}

// budget are the rooms that link the standard library and x/sys, and nothing
// else, so that a program that embeds them takes on no one else's code.
var budget = []string{"vfs", "xdr", "oncrpc", "export", "nfsserver"}

// pkg is what this test reads of go list -json.
type pkg struct {
	ImportPath string
	Dir        string
	Standard   bool
	GoFiles    []string
	Imports    []string
	Deps       []string
}

func (r *room) holds(p string) bool { return matches(r.path, p) }

func matches(pattern, p string) bool {
	if dir, ok := strings.CutSuffix(pattern, "/"); ok {
		return p == dir || strings.HasPrefix(p, pattern)
	}
	return p == pattern
}

// roomOf finds the room of a package by its path below the module.
func roomOf(p string) *room {
	for i := range rooms {
		if rooms[i].holds(p) {
			return &rooms[i]
		}
	}
	return nil
}

// ours is the path below the module of one of our packages.
func ours(importPath string) (string, bool) {
	if importPath == module {
		return "", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func list(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,Standard,GoFiles,Imports,Deps", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// TestFloors holds every package against its room: imports point down, and go
// where the room may go.
func TestFloors(t *testing.T) {
	for _, p := range list(t) {
		name, ok := ours(p.ImportPath)
		if !ok {
			continue
		}
		r := roomOf(name)
		if r == nil {
			t.Errorf("%s is in no room: name its floor here, in .golangci.yml and in docs/architecture.md", p.ImportPath)
			continue
		}
		for _, imp := range p.Imports {
			to, ok := ours(imp)
			if !ok {
				continue
			}
			if !slices.ContainsFunc(r.may, func(m string) bool { return matches(m, to) }) {
				t.Errorf("%s must not import %s", p.ImportPath, imp)
			}
			if tr := roomOf(to); tr != nil && tr != r && tr.floor >= r.floor {
				t.Errorf("%s (floor %d) imports %s (floor %d): up, or across", p.ImportPath, r.floor, imp, tr.floor)
			}
		}
	}
}

// wings are the folders of internal/, by what lives there, and the wings that each may import.
var wings = map[string][]string{
	"base":    nil,
	"client":  {"base"},
	"server":  {"base"},
	"testkit": {"base"},
	"tools":   {"base", "server"}, // the page that top draws
}

// wingOf is the wing that a package is in; none if it stands elsewhere.
func wingOf(name string) (string, bool) {
	below, ok := strings.CutPrefix(name, "internal/")
	wing, _, _ := strings.Cut(below, "/")
	return wing, ok
}

// TestWings: a wing imports no other but what stands in wings, nothing stands beside the wings,
// and none holds more than a third of the lines.
func TestWings(t *testing.T) {
	lines, all := make(map[string]int), 0
	for _, p := range list(t) {
		name, ok := ours(p.ImportPath)
		if !ok {
			continue
		}
		n := p.lines(t)
		all += n
		wing, ok := wingOf(name)
		if !ok {
			continue
		}
		lines[wing] += n
		may, known := wings[wing]
		if !known {
			t.Errorf("%s is in no wing", name)
		}
		for _, imp := range p.Imports {
			to, _ := ours(imp)
			if other, ok := wingOf(to); ok && other != wing && !slices.Contains(may, other) {
				t.Errorf("%s must not import %s, of another wing", name, to)
			}
		}
	}
	for wing, n := range lines {
		if 3*n > all {
			t.Errorf("internal/%s has %d of %d lines", wing, n, all)
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

// TestBudget holds the rooms that others embed to the standard library and
// x/sys, through everything that they import.
func TestBudget(t *testing.T) {
	all := list(t)
	std := make(map[string]bool)
	for _, p := range all {
		std[p.ImportPath] = p.Standard
	}
	for _, p := range all {
		name, ok := ours(p.ImportPath)
		if !ok || !slices.Contains(budget, name) {
			continue
		}
		for _, dep := range p.Deps {
			if _, ours := ours(dep); !ours && !std[dep] && !strings.HasPrefix(dep, "golang.org/x/sys/") {
				t.Errorf("%s links %s", p.ImportPath, dep)
			}
		}
	}
}

// TestDepguard looks for a rule in .golangci.yml for every room.
func TestDepguard(t *testing.T) {
	config, err := os.ReadFile(".golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rooms {
		if r.floor > 7 || r.path == "" {
			continue // a command imports what it likes; the root's rule has no folder
		}
		pattern := strings.TrimSuffix(r.path, "/") + "/*"
		if !strings.Contains(string(config), "**/"+pattern) {
			t.Errorf(".golangci.yml has no depguard rule for **/%s.go", pattern)
		}
	}
}
