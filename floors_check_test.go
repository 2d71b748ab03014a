package nfsbox_test

import (
	"slices"
	"strings"
	"testing"
)

// smallMap is a map as the page has it, of four rooms in two wings.
const smallMap = `
| floor | room | what it is | imports |
|-|-|-|-|
| 3 | ` + "`nfsbox`" + ` | the root | ` + "`tools/job` `server/*`" + ` |
| 2 | ` + "`tools/job`" + ` | copies | ` + "`base/metric`; `github.com/zeebo/blake3`" + ` |
| 1 | ` + "`server/*`" + ` | serves | |
| 1 | ` + "`base/metric`" + ` | counts | |

| wing | what lives there | imports |
|-|-|-|
| ` + "`internal/tools`" + ` | | ` + "`base`" + ` |
| ` + "`internal/server`" + ` | | |
| ` + "`internal/base`" + ` | | |

Embedded by others: ` + "`base/metric`" + `.
`

// smallHouse is what go list says of the packages of that map: each line is a package
// and its imports, below the module if they begin with a dot.
const smallHouse = `
.: ./internal/tools/job ./internal/server/fileapi errors
./internal/tools/job: ./internal/base/metric github.com/zeebo/blake3 io
./internal/server/fileapi: net/http
./internal/base/metric: sync
`

func smallPackages(house string) (all []pkg) {
	whole := func(name string) string {
		if below, ok := strings.CutPrefix(name, "."); ok {
			return module + below
		}
		return name
	}
	for line := range strings.Lines(strings.TrimSpace(house)) {
		name, imports, _ := strings.Cut(strings.TrimSpace(line), ":")
		p := pkg{ImportPath: whole(name)}
		for imp := range strings.FieldsSeq(imports) {
			p.Imports = append(p.Imports, whole(imp))
		}
		p.Deps = p.Imports
		all = append(all, p)
	}
	return all
}

// TestFloorsAreHeld finds in a small map, and in small packages, all that the tests of
// the large ones are for: one change each to what is right makes one fault.
func TestFloorsAreHeld(t *testing.T) {
	for name, c := range map[string]struct {
		change, from, to string // of the map or of the house
		want             []string
	}{
		"nothing": {},
		"an arrow up in the code": {"house", "metric: sync", "metric: sync ./internal/tools/job",
			[]string{"and room base/metric may not: do without it", "must not import " + module + "/internal/tools/job, of wing tools"}},
		"an arrow up in the map": {"map", "| counts | |", "| counts | `server/*` |",
			[]string{"base/metric (floor 1) imports server/* (floor 1), up or across", "imports server/*, and nothing there does"}},
		"a circle": {"map", "| serves | |", "| serves | `tools/job` |",
			[]string{"server/* (floor 1) imports tools/job (floor 2), up", "nothing there does"}},
		"a circle of wings": {"map", "`internal/base` | | |", "`internal/base` | | `tools` |",
			[]string{"wing base imports tools, which does not stand below it"}},
		"a wing that may not": {"map", "`internal/tools` | | `base` |", "`internal/tools` | | |",
			[]string{"tools/job must not import " + module + "/internal/base/metric, of wing base"}},
		"a room out of order": {"map", "| 3 | `nfsbox` | the root | `tools/job` `server/*` |\n| 2 | `tools/job` | copies | `base/metric`; `github.com/zeebo/blake3` |",
			"| 2 | `tools/job` | copies | `base/metric`; `github.com/zeebo/blake3` |\n| 3 | `nfsbox` | the root | `tools/job` `server/*` |",
			[]string{"has nfsbox after tools/job"}},
		"no such wing": {"house", "./internal/base/metric: sync", "./internal/base/metric:\n./internal/other/x:",
			[]string{"internal/other/x is in no room", "internal/other/x is in no wing"}},
		"a room that is missing": {"house", ".:", "./xdr:\n.:",
			[]string{module + "/xdr is in no room: give it a line"}},
		"a room that is gone": {"house", "./internal/base/metric: sync", "",
			[]string{"room base/metric of docs/architecture.md has no package"}},
		"a room that is there twice": {"map", "| 1 | `base/metric`", "| 1 | `base/metric` | counts | |\n| 1 | `base/metric`",
			[]string{"base/metric stands twice", "room base/metric of docs/architecture.md has no package"}},
		"an arrow to no room": {"map", "`tools/job` `server/*`", "`tools/job` `server/*` `vfs`",
			[]string{"imports vfs, which is no room", "nothing there does"}},
		"an import that is not named": {"house", "job ./internal/server/fileapi", "job ./internal/server/fileapi ./internal/base/metric",
			[]string{"room nfsbox may not"}},
		"an import that is not there": {"house", "job: ./internal/base/metric", "job:",
			[]string{"tools/job imports base/metric, and nothing there does: take it out"}},
		"a module that is not named": {"house", "errors", "github.com/zeebo/blake3/guts",
			[]string{"nfsbox imports github.com/zeebo/blake3/guts, and room nfsbox may not"}},
		"a module much like one that is named": {"house", "io", "github.com/zeebo/blake3x",
			[]string{"imports github.com/zeebo/blake3x, and room tools/job may not"}},
		"a module below what is embedded": {"map", "others: `base/metric`", "others: `tools/job`",
			[]string{"tools/job links github.com/zeebo/blake3, and so would"}},
		"an embedded room that is none": {"map", "others: `base/metric`", "others: `metric`",
			[]string{"metric embedded by others, which is no room"}},
	} {
		t.Run(name, func(t *testing.T) {
			page, house := smallMap, smallHouse
			switch c.change {
			case "map":
				page = changed(t, page, c.from, c.to)
			case "house":
				house = changed(t, house, c.from, c.to)
			}
			m, err := readMap(page)
			if err != nil {
				t.Fatal(err)
			}
			all := smallPackages(house)
			found := slices.Concat(m.checkMap(), m.checkOrder(), m.checkImports(all), m.checkWings(all), m.checkEmbedded(all))
			if len(found) != len(c.want) {
				t.Errorf("%d faults, want %d:\n%s", len(found), len(c.want), strings.Join(found, "\n"))
			}
			for _, want := range c.want {
				if !strings.Contains(strings.Join(found, "\n"), want) {
					t.Errorf("not found: %s, among:\n%s", want, strings.Join(found, "\n"))
				}
			}
		})
	}
}

func changed(t *testing.T, text, from, to string) string {
	t.Helper()
	if strings.Count(text, from) != 1 {
		t.Fatalf("%q is there %d times", from, strings.Count(text, from))
	}
	return strings.Replace(text, from, to, 1)
}
