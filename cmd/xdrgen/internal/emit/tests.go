package emit

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/cmd/xdrgen/internal/xdrlang"
)

// A generated test file has three parts: for each type, a function that makes a
// sample of it; one table with every type's values; the checks, which are the
// same for every specification (checks.go). Values are chosen here, where
// bounds and arms are known, so that the table is plain Go.

// tests prints the file with tests. base tells the files of one package apart.
func (m *model) tests(base string) []byte {
	g := &testGen{gen: gen{m: m}, base: base}
	for _, d := range m.defs {
		if d.typ.methods() && !d.alias {
			g.sampleFunc(d)
		}
	}
	g.p("// gen%sTypes are the types of %s with values of each.", base, filepath.Base(m.spec.File))
	g.p("func gen%sTypes() []gen%sType {\nreturn []gen%sType{", base, base, base)
	for _, d := range m.defs {
		if d.typ.methods() && !d.alias {
			g.row(d)
		}
	}
	g.p("}\n}\n")
	checks := checkFunctions
	if m.hasBulk() {
		checks += bulkChecks
	}
	if m.hasNodes() {
		checks += listChecks
	}
	g.WriteString(strings.ReplaceAll(checks, "BASE", base))
	return g.Bytes()
}

func (m *model) hasBulk() bool {
	return slices.ContainsFunc(m.defs, func(d *def) bool { return d.bulk >= 0 })
}

func (m *model) hasNodes() bool {
	return slices.ContainsFunc(m.defs, func(d *def) bool { return d.node })
}

type testGen struct {
	gen
	base string
	seed uint64 // the last number given out; every one differs
}

func (g *testGen) number() uint64 {
	g.seed++
	return g.seed
}

func (g *testGen) sampleFunc(d *def) {
	g.seed = 0
	g.p("func sample%s() %s {\nreturn %s\n}\n", d.name, d.name, g.literal(d, nil))
}

// literal is a value of d as Go writes it; of a union, with the given arm, by
// default the first that has a value.
func (g *testGen) literal(d *def, a *arm) string {
	switch d.typ.kind {
	case kStruct:
		return d.name + "{" + g.fields(d.fields, "") + "}"
	case kUnion:
		if a == nil {
			a = d.firstArm()
		}
		return g.unionLiteral(d, a, d.label(a))
	}
	anonymous := *d.typ
	anonymous.def = nil
	return d.name + strings.TrimPrefix(g.value(&anonymous), anonymous.name)
}

func (g *testGen) fields(fields []*field, except string) string {
	var out []string
	for _, f := range fields {
		if v := g.value(f.typ); v != "" && f.name != except {
			out = append(out, f.name+": "+v)
		}
	}
	return join(out)
}

func (g *testGen) unionLiteral(d *def, a *arm, label string) string {
	out := d.name + "{" + d.fields[0].name + ": " + label
	if a != nil && a.field != nil {
		if v := g.value(a.field.typ); v != "" {
			out += ", " + a.field.name + ": " + v
		}
	}
	return out + "}"
}

// firstArm is the first arm with a value that does not lead back to d; a void
// one if there is none.
func (d *def) firstArm() *arm {
	for _, a := range d.arms {
		if a.field != nil && !a.field.typ.leadsToRecursion() {
			return a
		}
	}
	for _, a := range d.arms {
		if a.field == nil {
			return a
		}
	}
	return d.arms[0]
}

// leadsToRecursion reports whether a sample of t might not end.
func (t *typ) leadsToRecursion() bool {
	return slices.ContainsFunc(t.refs(), func(d *def) bool { return d.recursive })
}

func (d *def) label(a *arm) string {
	if len(a.cases) > 0 {
		return a.cases[0]
	}
	return d.unused()
}

// unused is a value of the discriminant that no case of d has; "" if there is
// none, for a bool has but two.
func (d *def) unused() string {
	taken := make(map[string]bool)
	for _, a := range d.arms {
		for _, v := range a.vals {
			taken[v.String()] = true
		}
	}
	disc := d.fields[0].typ
	if disc.kind == kBool {
		switch {
		case !taken["0"]:
			return "false"
		case !taken["1"]:
			return "true"
		}
		return ""
	}
	if disc.kind == kEnum {
		for _, e := range disc.def.members {
			if !taken[e.Val.String()] {
				return goName(e.Name)
			}
		}
	}
	for n := uint64(0); ; n++ {
		if s := (xdrlang.Value{Abs: n}).String(); !taken[s] {
			return s
		}
	}
}
