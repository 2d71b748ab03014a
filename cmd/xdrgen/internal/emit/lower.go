package emit

import (
	"slices"

	"github.com/nfsbox/nfsbox/cmd/xdrgen/internal/xdrlang"
)

func build(spec *xdrlang.Spec, opt Options) (*model, error) {
	m := &model{spec: spec, types: make(map[*xdrlang.TypeDef]*typ), names: make(scope)}
	m.nodes = findNodes(spec)
	for _, c := range spec.Consts {
		m.fail(m.names.claim(goName(c.Name), c.Name, c.Pos))
	}
	for _, t := range spec.Types {
		m.typeDef(t)
	}
	m.open(opt.Open)
	m.programs(opt)
	m.markRecursive()
	m.markBulk(opt.Bulk)
	for _, d := range m.defs {
		if !d.alias {
			m.checkFields(d)
		}
	}
	if len(m.errs) > 0 {
		return nil, m.errs
	}
	return m, nil
}

// open marks the enums that are decoded whatever their value is.
func (m *model) open(names []string) {
	for _, name := range names {
		i := slices.IndexFunc(m.defs, func(d *def) bool { return d.spec == name && d.typ.kind == kEnum && !d.alias })
		if i < 0 {
			m.fail(xdrlang.Errorf(m.start(), "-open %s: there is no such enum", name))
			continue
		}
		m.defs[i].open = true
	}
}

// typeDef lowers a definition once. Its type is known before what it refers to
// is lowered, for that may be itself.
func (m *model) typeDef(t *xdrlang.TypeDef) *typ {
	if known := m.types[t]; known != nil {
		return known
	}
	name := goName(t.Name)
	d := &def{name: name, spec: t.Name, doc: t.Doc, pos: t.Pos, bulk: -1, source: t}
	known := &typ{}
	body := t.Decl.Type
	switch {
	case t.Decl.Shape == xdrlang.Plain && body.Kind == xdrlang.Named:
		known = m.typeDef(body.Def)
		m.types[t] = known
		d.alias = true
		m.declare(d, known)
	case t.Decl.Shape == xdrlang.Plain && body.Kind >= xdrlang.EnumKind:
		m.types[t] = known
		m.body(d, body, known)
	case t.Decl.Shape != xdrlang.Plain && m.plainArray(t.Decl):
		*known = typ{name: name, def: d}
		m.types[t] = known
		m.declare(d, known)
		lowered := *m.decl(t.Decl, d)
		lowered.name, lowered.def = name, d
		*known = lowered
	default:
		m.types[t] = known
		d.alias = true
		m.declare(d, known)
		*known = *m.decl(t.Decl, d)
	}
	return known
}

// plainArray reports whether the declaration becomes a Go slice or array of
// elements that deserves a name: anything but bytes and a pointer.
func (m *model) plainArray(d *xdrlang.Decl) bool {
	if d.Shape == xdrlang.Optional {
		target := structDef(d.Type)
		return target != nil && m.nodes[target]
	}
	return d.Type.Kind != xdrlang.Opaque && d.Type.Kind != xdrlang.String
}

func (m *model) declare(d *def, t *typ) {
	m.fail(m.names.claim(d.name, d.spec, d.pos))
	d.typ = t
	m.defs = append(m.defs, d)
}

func (m *model) body(d *def, body *xdrlang.Type, known *typ) {
	*known = typ{name: d.name, def: d}
	switch body.Kind {
	case xdrlang.EnumKind:
		known.kind = kEnum
		d.members = body.Enum.Members
		m.declare(d, known)
		for _, e := range d.members {
			m.fail(m.names.claim(goName(e.Name), e.Name, e.Pos))
		}
	case xdrlang.StructKind:
		known.kind = kStruct
		m.declare(d, known)
		fields := body.Fields
		if m.nodes[d.source] {
			d.node = true
			fields = fields[:len(fields)-1]
		}
		for _, f := range fields {
			d.fields = append(d.fields, m.field(d, f))
		}
	case xdrlang.UnionKind:
		known.kind = kUnion
		m.declare(d, known)
		m.union(d, body.Union)
	}
}

func (m *model) field(d *def, f *xdrlang.Decl) *field {
	return &field{
		name: goName(f.Name), spec: d.spec + "." + f.Name, doc: f.Doc, pos: f.Pos, typ: m.decl(f, d),
	}
}

func (m *model) union(d *def, u *xdrlang.Union) {
	disc := m.field(d, u.Disc)
	d.fields = append(d.fields, disc)
	for _, a := range u.Arms {
		out := &arm{}
		for _, x := range a.Cases {
			out.cases = append(out.cases, caseName(disc.typ, x))
			out.vals = append(out.vals, x.Val)
		}
		if a.Decl.Type.Kind != xdrlang.Void {
			out.field = m.field(d, a.Decl)
			d.fields = append(d.fields, out.field)
		}
		d.arms = append(d.arms, out)
	}
}

// caseName is how Go writes a case label of a discriminant of type t.
func caseName(t *typ, x *xdrlang.Expr) string {
	switch t.kind {
	case kBool:
		if x.Val.Abs == 1 {
			return "true"
		}
		return "false"
	case kEnum:
		for _, e := range t.def.members {
			if e.Val == x.Val {
				return goName(e.Name)
			}
		}
	}
	return x.Val.String()
}

// decl lowers a declaration. Bodies in place become types named for the
// definition around them and the field.
func (m *model) decl(d *xdrlang.Decl, parent *def) *typ {
	switch d.Type.Kind {
	case xdrlang.String:
		return &typ{kind: kBytes, bound: d.Bound()}
	case xdrlang.Opaque:
		if d.Shape == xdrlang.VarArray {
			return &typ{kind: kBytes, bound: d.Bound()}
		}
		return &typ{kind: kFixed, n: int(d.Bound())}
	}
	elem := m.specifier(d, parent)
	switch d.Shape {
	case xdrlang.FixedArray:
		return &typ{kind: kArray, elem: elem, n: int(d.Bound())}
	case xdrlang.VarArray:
		return &typ{kind: kSlice, elem: elem, bound: d.Bound()}
	case xdrlang.Optional:
		if target := structDef(d.Type); target != nil && m.nodes[target] {
			return &typ{kind: kList, elem: elem}
		}
		return &typ{kind: kPtr, elem: elem}
	}
	return elem
}

var baseKinds = map[xdrlang.Kind]kind{
	xdrlang.Int: kInt32, xdrlang.Uint: kUint32, xdrlang.Hyper: kInt64, xdrlang.Uhyper: kUint64,
	xdrlang.Float: kFloat32, xdrlang.Double: kFloat64, xdrlang.Bool: kBool,
}

// specifier lowers the type of a declaration without its shape.
func (m *model) specifier(d *xdrlang.Decl, parent *def) *typ {
	if d.Type.Kind == xdrlang.Named {
		return m.typeDef(d.Type.Def)
	}
	if k, ok := baseKinds[d.Type.Kind]; ok {
		return &typ{kind: k}
	}
	inner := &def{
		made: "what " + parent.spec + " has in the place of " + d.Name,
		name: parent.name + goName(d.Name), spec: parent.spec + "." + d.Name, pos: d.Pos, bulk: -1,
	}
	if d.Name == parent.spec { // "typedef struct {...} name[4]" has one name for both
		inner.name = parent.name + "Elem"
	}
	known := &typ{}
	m.body(inner, d.Type, known)
	return known
}
