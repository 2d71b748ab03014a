package emit

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/nfsbox/nfsbox/cmd/xdrgen/internal/xdrlang"
)

// Bounds on the values in generated tests: what is larger is tested by smaller
// values only, to keep the tests small and fast.
const (
	maxLimit  = 4096 // elements or bytes in a value that is as long as its bound
	maxSample = 16   // elements of a fixed array written out
)

// value is a value of t as Go writes it, or "" for the zero value, which ends
// the recursion of recursive types.
func (g *testGen) value(t *typ) string {
	switch t.kind {
	case kBool:
		return "true"
	case kEnum:
		return goName(t.def.members[len(t.def.members)-1].Name)
	case kInt32, kInt64:
		return fmt.Sprintf("-%d", g.number())
	case kUint32:
		return fmt.Sprintf("%#x", 0xf1000000+g.number())
	case kUint64:
		return fmt.Sprintf("%#x", 0xf100000000000000+g.number())
	case kFloat32, kFloat64:
		return fmt.Sprintf("%d.5", g.number())
	case kFixed:
		if t.n == 1 {
			return fmt.Sprintf("[1]byte{%d}", g.number()%256)
		}
		return fmt.Sprintf("[%d]byte{0: %d, %d: 0xff}", t.n, g.number()%256, t.n-1)
	case kBytes:
		return g.bytes(t)
	}
	if t.leadsToRecursion() {
		return ""
	}
	switch t.kind {
	case kStruct, kUnion:
		return "sample" + t.def.name + "()"
	case kPtr:
		return "new(" + g.pointed(t.elem) + ")"
	}
	if t.def != nil {
		return "sample" + t.def.name + "()"
	}
	return g.several(t)
}

func (g *testGen) bytes(t *typ) string {
	s := fmt.Sprintf("v%d", g.number())
	if int64(len(s)) > int64(t.bound) {
		s = s[:t.bound]
	}
	return fmt.Sprintf("[]byte(%q)", s)
}

// pointed is a value for new: one with a type of its own.
func (g *testGen) pointed(t *typ) string {
	v := g.value(t)
	if _, ok := scalars[t.kind]; ok && t.kind != kEnum && t.kind != kBool {
		return t.String() + "(" + v + ")"
	}
	return v
}

func (g *testGen) several(t *typ) string {
	n := 2
	switch t.kind {
	case kArray:
		n = min(t.n, maxSample)
	case kSlice:
		n = int(min(int64(n), int64(t.bound)))
	}
	elems := make([]string, n)
	for i := range elems {
		elems[i] = g.value(t.elem)
	}
	return t.String() + "{" + join(elems) + "}"
}

func zeroValid(t *typ) bool {
	switch t.kind {
	case kEnum:
		return !t.closed() || t.def.has(0)
	case kStruct:
		for _, f := range t.def.fields {
			if !zeroValid(f.typ) {
				return false
			}
		}
	case kUnion:
		a := t.def.zeroArm()
		return a != nil && zeroValid(t.def.fields[0].typ) && (a.field == nil || zeroValid(a.field.typ))
	case kArray:
		return zeroValid(t.elem)
	}
	return true
}

func (d *def) has(v uint64) bool {
	return slices.ContainsFunc(d.members, func(e *xdrlang.Member) bool { return !e.Val.Neg && e.Val.Abs == v })
}

// zeroArm is the arm that the discriminant 0 selects, or nil.
func (d *def) zeroArm() *arm {
	for _, a := range d.arms {
		if len(a.cases) == 0 {
			return a
		}
		for _, v := range a.vals {
			if v.Abs == 0 {
				return a
			}
		}
	}
	return nil
}

func (g *testGen) row(d *def) {
	g.seed = 1000
	base := g.base
	g.p("{\nname: %q,\nfresh: func() gen%sValue { return new(%s) },", d.name, base, d.name)
	g.p("values: []gen%sValue{", base)
	if zeroValid(d.typ) {
		g.p("new(%s),", d.name)
	}
	g.p("new(sample%s()),", d.name)
	for _, a := range d.arms {
		labels := a.cases
		if len(labels) == 0 {
			label := d.unused()
			if label == "" || d.fields[0].typ.closed() && unicode.IsDigit(rune(label[0])) {
				continue // a default that nothing can select
			}
			labels = []string{label}
		}
		for _, label := range labels {
			g.p("&%s,", g.unionLiteral(d, a, label))
		}
	}
	g.p("},")
	if d.typ.kind == kUnion && !d.exhaustive() {
		g.p("bad: []gen%sValue{&%s{%s: %s}},", base, d.name, d.fields[0].name, d.unused())
	}
	g.limits(d)
	g.p("},")
}

func (g *testGen) limits(d *def) {
	var rows []string
	add := func(t *typ, before, after string) {
		if t.kind != kBytes && t.kind != kSlice || t.bound > maxLimit || t.kind == kSlice && !zeroValid(t.elem) {
			return
		}
		elem := "byte"
		if t.kind == kSlice {
			elem = t.elem.String()
		}
		of := func(n uint32) string { return fmt.Sprintf("&%s%smake([]%s, %d)%s", d.name, before, elem, n, after) }
		rows = append(rows, fmt.Sprintf("{empty: %s, full: %s, over: %s},", of(0), of(t.bound), of(t.bound+1)))
	}
	switch d.typ.kind {
	case kStruct:
		for _, f := range d.fields {
			if f.typ.methods() {
				continue
			}
			others := g.fields(d.fields, f.name)
			if others != "" {
				others = ", " + others
			}
			add(f.typ, "{"+f.name+": ", others+"}")
		}
	case kUnion:
		for _, a := range d.arms {
			if a.field != nil && !a.field.typ.methods() && len(a.cases) > 0 {
				add(a.field.typ, "{"+d.fields[0].name+": "+a.cases[0]+", "+a.field.name+": ", "}")
			}
		}
	case kSlice:
		rows = append(rows, g.sliceLimit(d)...)
	}
	if len(rows) > 0 {
		g.p("limits: []gen%sLimit{\n%s\n},", g.base, strings.Join(rows, "\n"))
	}
}

func (g *testGen) sliceLimit(d *def) []string {
	if d.typ.bound > maxLimit || !zeroValid(d.typ.elem) {
		return nil
	}
	of := func(n uint32) string { return fmt.Sprintf("new(make(%s, %d))", d.name, n) }
	return []string{fmt.Sprintf("{empty: %s, full: %s, over: %s},", of(0), of(d.typ.bound), of(d.typ.bound+1))}
}
