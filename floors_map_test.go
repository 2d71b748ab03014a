package nfsbox_test

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The map is in docs/architecture.md: a table of rooms, a table of wings, and the
// line of those that others embed. The tests of floors read it there.

const (
	module  = "github.com/nfsbox/nfsbox"
	mapPage = "docs/architecture.md"

	// embedLine begins the line that names the rooms which others embed.
	embedLine = "Embedded by others:"
)

// room is a line of the map: a package, or the packages of a folder, and what
// they may import.
type room struct {
	name    string   // "server/daemon"; "proto/*" is everything in that folder
	path    string   // name below the module's directory; the root's is ""
	floor   int      // higher than those of all rooms that it imports
	imports []string // rooms by name, and other modules' packages by path
}

// wing is a folder of internal/ and the wings that it may import.
type wing struct {
	name string
	may  []string
}

type floorMap struct {
	rooms    []room
	wings    []wing
	embedded []string // names of rooms that link the standard library and x/sys alone
}

var quoted = regexp.MustCompile("`([^`]+)`")

// names are the words of s in backquotes.
func names(s string) (list []string) {
	for _, m := range quoted.FindAllStringSubmatch(s, -1) {
		list = append(list, m[1])
	}
	return list
}

// readMap finds the map in a page.
func readMap(page string) (*floorMap, error) {
	m := new(floorMap)
	for line := range strings.Lines(page) {
		if rest, ok := strings.CutPrefix(line, embedLine); ok {
			m.embedded = names(rest)
			continue
		}
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) == 6 { // nothing stands before the first bar, nor behind the last
			floor, err := strconv.Atoi(strings.TrimSpace(cells[1]))
			if name := names(cells[2]); err == nil && len(name) == 1 {
				m.rooms = append(m.rooms, room{name: name[0], floor: floor, imports: names(cells[4])})
			}
		}
		if len(cells) == 5 {
			if name, ok := strings.CutPrefix(strings.TrimSpace(cells[1]), "`internal/"); ok {
				m.wings = append(m.wings, wing{strings.TrimSuffix(name, "`"), names(cells[3])})
			}
		}
	}
	for i := range m.rooms {
		m.rooms[i].path = m.pathOf(m.rooms[i].name)
	}
	if len(m.rooms) == 0 || len(m.wings) == 0 || len(m.embedded) == 0 {
		return nil, errors.New("the page has no table of rooms, or none of wings, or no line of what others embed")
	}
	return m, nil
}

// pathOf is where a room stands: those of wings below internal/.
func (m *floorMap) pathOf(name string) string {
	if name == path.Base(module) {
		return ""
	}
	if first, _, _ := strings.Cut(name, "/"); m.wing(first) >= 0 {
		return "internal/" + name
	}
	return name
}

// wing is the place of a wing in its table; -1 if there is none of that name.
func (m *floorMap) wing(name string) int {
	return slices.IndexFunc(m.wings, func(w wing) bool { return w.name == name })
}

// room is the one of that name; nil if there is none.
func (m *floorMap) room(name string) *room {
	if i := slices.IndexFunc(m.rooms, func(r room) bool { return r.name == name }); i >= 0 {
		return &m.rooms[i]
	}
	return nil
}

// roomOf is the room of a package, by its path below the module. A room of its own
// is preferred to a folder, and the folder within to the one around it.
func (m *floorMap) roomOf(p string) (best *room) {
	for i := range m.rooms {
		r := &m.rooms[i]
		if r.path == p {
			return r
		}
		if within(r.path, p) && (best == nil || len(r.path) > len(best.path)) {
			best = r
		}
	}
	return best
}

// within reports whether a package is what pattern names, or in its folder.
func within(pattern, p string) bool {
	if dir, ok := strings.CutSuffix(pattern, "/*"); ok {
		return p == dir || strings.HasPrefix(p, dir+"/")
	}
	return p == pattern
}

// isOther reports whether an import path is neither ours nor of the standard library.
func isOther(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	_, own := ours(p)
	return strings.Contains(first, ".") && !own
}

// ours is the path below the module of one of our packages.
func ours(importPath string) (string, bool) {
	if importPath == module {
		return "", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// allows finds what in a room's line covers an import.
func (m *floorMap) allows(r *room, imp string) (arrow string, ok bool) {
	own, mine := ours(imp)
	i := slices.IndexFunc(r.imports, func(name string) bool {
		if mine {
			return !isOther(name) && within(m.pathOf(name), own)
		}
		return imp == name || strings.HasPrefix(imp, name+"/")
	})
	if i < 0 {
		return "", false
	}
	return r.imports[i], true
}

// checkMap holds the map against itself: every arrow leads to a room further down,
// and every wing imports those below it alone, so that there is no circle.
func (m *floorMap) checkMap() (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for i, r := range m.rooms {
		if m.room(r.name) != &m.rooms[i] {
			fault("room %s stands twice in %s: keep one line", r.name, mapPage)
		}
		for _, to := range r.imports {
			if isOther(to) || to == r.name {
				continue
			}
			if t := m.roomOf(strings.TrimSuffix(m.pathOf(to), "/*")); t == nil {
				fault("%s says that %s imports %s, which is no room: give it a line", mapPage, r.name, to)
			} else if t.floor >= r.floor {
				fault("%s says that %s (floor %d) imports %s (floor %d), up or across: turn the import around, or move a room",
					mapPage, r.name, r.floor, to, t.floor)
			}
		}
	}
	for i, w := range m.wings {
		for _, to := range w.may {
			if m.wing(to) <= i {
				fault("%s says that wing %s imports %s, which does not stand below it: wings must not import each other in a circle", mapPage, w.name, to)
			}
		}
	}
	for _, name := range m.embedded {
		if m.room(name) == nil {
			fault("%s has %s embedded by others, which is no room", mapPage, name)
		}
	}
	return faults
}

// checkOrder holds the rooms to the order in which a reader looks for one: those outside
// internal/ first, then wing by wing, and by name.
func (m *floorMap) checkOrder() (faults []string) {
	compare := func(a, b room) int {
		wa, _, _ := strings.Cut(a.name, "/")
		wb, _, _ := strings.Cut(b.name, "/")
		return cmp.Or(m.wing(wa)-m.wing(wb), strings.Compare(a.name, b.name))
	}
	for i := 1; i < len(m.rooms); i++ {
		if a, b := m.rooms[i-1], m.rooms[i]; compare(a, b) > 0 {
			faults = append(faults, fmt.Sprintf("%s has %s after %s: sort rooms by wing, then by name", mapPage, b.name, a.name))
		}
	}
	return faults
}

// checkImports holds every package against its room, and every arrow of the map
// against the imports that there are.
func (m *floorMap) checkImports(all []pkg) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	used, lived := make(map[string]bool), make(map[*room]bool)
	for _, p := range all {
		name, ok := ours(p.ImportPath)
		if !ok {
			continue
		}
		r := m.roomOf(name)
		if r == nil {
			fault("%s is in no room: give it a line in the table of floors in %s", p.ImportPath, mapPage)
			continue
		}
		lived[r] = true
		for _, imp := range p.Imports {
			if _, own := ours(imp); !own && !isOther(imp) {
				continue
			}
			arrow, ok := m.allows(r, imp)
			if !ok {
				fault("%s imports %s, and room %s may not: do without it, or name it in the room's line in %s", p.ImportPath, imp, r.name, mapPage)
			}
			used[r.name+" "+arrow] = true
		}
	}
	for i, r := range m.rooms {
		if !lived[&m.rooms[i]] {
			fault("room %s of %s has no package: take its line out", r.name, mapPage)
			continue
		}
		for _, to := range r.imports {
			if !used[r.name+" "+to] {
				fault("%s says that %s imports %s, and nothing there does: take it out of the line", mapPage, r.name, to)
			}
		}
	}
	return faults
}

// checkWings: a wing imports no other but what the map says, and nothing of internal/
// stands beside the wings.
func (m *floorMap) checkWings(all []pkg) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for _, p := range all {
		name, ok := wingOf(p.ImportPath)
		if !ok {
			continue
		}
		i := m.wing(name)
		if i < 0 {
			fault("%s is in no wing: move it, or give internal/%s a line in %s", p.ImportPath, name, mapPage)
			continue
		}
		for _, imp := range p.Imports {
			if other, ok := wingOf(imp); ok && other != name && !slices.Contains(m.wings[i].may, other) {
				fault("%s must not import %s, of wing %s", p.ImportPath, imp, other)
			}
		}
	}
	return faults
}

// wingOf is the wing that one of our packages is in; none if it stands elsewhere.
func wingOf(importPath string) (string, bool) {
	below, ok := strings.CutPrefix(importPath, module+"/internal/")
	wing, _, _ := strings.Cut(below, "/")
	return wing, ok
}

// checkEmbedded holds the rooms that others embed to the standard library and x/sys,
// through everything that they import.
func (m *floorMap) checkEmbedded(all []pkg) (faults []string) {
	for _, p := range all {
		name, ok := ours(p.ImportPath)
		if r := m.roomOf(name); !ok || r == nil || !slices.Contains(m.embedded, r.name) {
			continue
		}
		for _, dep := range p.Deps {
			if isOther(dep) && !strings.HasPrefix(dep, "golang.org/x/sys/") {
				faults = append(faults, fmt.Sprintf("%s links %s, and so would every program that embeds it: do without", p.ImportPath, dep))
			}
		}
	}
	return faults
}
