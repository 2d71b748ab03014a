package emit

import (
	"fmt"
	"math"

	"github.com/nfsbox/nfsbox/cmd/xdrgen/internal/xdrlang"
)

// kind is what a Go type is to the emitters.
type kind int

const (
	kInt32 kind = iota
	kUint32
	kInt64
	kUint64
	kFloat32
	kFloat64
	kBool
	kEnum   // a named int32
	kFixed  // [n]byte
	kBytes  // []byte, at most bound
	kStruct // a named struct
	kUnion  // a named struct with a discriminant
	kArray  // [n]elem
	kSlice  // []elem, at most bound
	kPtr    // *elem
	kList   // []elem, a linked list on the wire
)

// scalar is a row of what the emitters know of a base type: its Go name, its
// size on the wire, and the xdr method and function that take it one at a time.
type scalar struct {
	goType string
	size   int
	method string // of Decoder; the function is "Append" and the same
}

var scalars = map[kind]scalar{
	kInt32:   {"int32", 4, "Int32"},
	kUint32:  {"uint32", 4, "Uint32"},
	kInt64:   {"int64", 8, "Int64"},
	kUint64:  {"uint64", 8, "Uint64"},
	kFloat32: {"float32", 4, "Float32"},
	kFloat64: {"float64", 8, "Float64"},
	kBool:    {"bool", 4, "Bool"},
	kEnum:    {"", 4, "Int32"},
}

// typ is a type of the specification in Go's terms.
type typ struct {
	kind  kind
	name  string // of a type with a Go declaration of its own
	def   *def   // kEnum, kStruct, kUnion; the others: set if the type has a name and methods of its own
	elem  *typ   // kArray, kSlice, kPtr, kList
	n     int    // kFixed, kArray
	bound uint32 // kBytes, kSlice
}

// def is a type that gets a Go declaration.
type def struct {
	name  string // in Go
	spec  string // in the specification
	doc   string
	pos   xdrlang.Pos
	typ   *typ // of values of this type
	alias bool // another name of typ, without methods of its own

	source *xdrlang.TypeDef // nil for a body in place

	members []*xdrlang.Member // kEnum
	fields  []*field          // kStruct; a kUnion has its discriminant first, then the arms with a value
	arms    []*arm            // kUnion, the default arm last

	node      bool // of a linked list: kStruct without its last field
	recursive bool
	sized     bool // size and least are known
	size      int  // of kStruct on the wire, -1 if it varies
	least     int  // of kStruct and kUnion on the wire
	bulk      int  // index in fields of the bulk opaque, or of what holds it; -1 for none
}

// field is a field of a Go struct.
type field struct {
	name string
	spec string // type.field, for messages
	doc  string
	pos  xdrlang.Pos
	typ  *typ
}

// arm is one arm of a union. Without cases it is the default; without a field
// it is void.
type arm struct {
	cases []string // as Go writes them
	vals  []xdrlang.Value
	field *field
}

// String is the type as Go writes it.
func (t *typ) String() string {
	if t.name != "" {
		return t.name
	}
	switch t.kind {
	case kFixed:
		return fmt.Sprintf("[%d]byte", t.n)
	case kBytes:
		return "[]byte"
	case kArray:
		return fmt.Sprintf("[%d]%s", t.n, t.elem)
	case kPtr:
		return "*" + t.elem.String()
	case kSlice, kList:
		return "[]" + t.elem.String()
	}
	return scalars[t.kind].goType
}

// wire is the size on the wire, or -1 if it varies.
func (t *typ) wire() int {
	switch t.kind {
	case kFixed:
		return (t.n + 3) &^ 3
	case kArray:
		if n := t.elem.wire(); n >= 0 {
			return n * t.n
		}
		return -1
	case kStruct:
		t.def.measure()
		return t.def.size
	}
	if s, ok := scalars[t.kind]; ok {
		return s.size
	}
	return -1
}

// min is the least that a value takes on the wire.
func (t *typ) min() int {
	switch t.kind {
	case kStruct, kUnion:
		t.def.measure()
		return t.def.least
	case kArray:
		return t.n * t.elem.min()
	}
	return max(t.wire(), 4)
}

// measure computes the sizes of a struct or union, once: a type may be held
// very many times over.
func (d *def) measure() {
	if d.sized {
		return
	}
	d.sized = true
	if d.typ.kind == kUnion {
		d.size, d.least = -1, 4+d.leastArm()
		return
	}
	for _, f := range d.fields {
		d.least += f.typ.min()
		if n := f.typ.wire(); n < 0 || d.size < 0 {
			d.size = -1
		} else {
			d.size += n
		}
	}
	if d.node || d.recursive {
		d.size = -1
	}
}

// leastArm is the least that the arms of a union take.
func (d *def) leastArm() int {
	least := math.MaxInt
	for _, a := range d.arms {
		n := 0
		if a.field != nil {
			n = a.field.typ.min()
		}
		least = min(least, n)
	}
	return least
}

// hasBool reports whether a type of fixed size holds a bool: the one such type
// whose every value is not fine.
func (t *typ) hasBool() bool {
	switch t.kind {
	case kBool:
		return true
	case kArray:
		return t.elem.hasBool()
	case kStruct:
		for _, f := range t.def.fields {
			if f.typ.hasBool() {
				return true
			}
		}
	}
	return false
}

// methods reports whether values of t have AppendXDR and DecodeXDR.
func (t *typ) methods() bool { return t.def != nil && t.kind != kEnum }

// exhaustive reports whether every discriminant selects an arm.
func (d *def) exhaustive() bool {
	last := d.arms[len(d.arms)-1]
	return len(last.cases) == 0 || d.fields[0].typ.kind == kBool && d.unused() == ""
}

// model is a whole specification in Go's terms.
type model struct {
	spec  *xdrlang.Spec
	defs  []*def // in the order of the text
	types map[*xdrlang.TypeDef]*typ
	nodes map[*xdrlang.TypeDef]bool
	names scope
	progs []*program
	errs  xdrlang.ErrorList
}

func (m *model) fail(err *xdrlang.Error) {
	if err != nil && len(m.errs) < xdrlang.MaxErrors {
		m.errs = append(m.errs, err)
	}
}

// build lowers a specification.
func build(spec *xdrlang.Spec, opt Options) (*model, error) {
	m := &model{spec: spec, types: make(map[*xdrlang.TypeDef]*typ), names: make(scope)}
	m.nodes = findNodes(spec)
	for _, c := range spec.Consts {
		m.fail(m.names.claim(goName(c.Name), c.Name, c.Pos))
	}
	for _, t := range spec.Types {
		m.typeDef(t)
	}
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

// body lowers an enum, struct or union into d.
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
		name: parent.name + goName(d.Name), spec: parent.spec + "." + d.Name, pos: d.Pos, bulk: -1,
	}
	if d.Name == parent.spec { // "typedef struct {...} name[4]" has one name for both
		inner.name = parent.name + "Elem"
	}
	known := &typ{}
	m.body(inner, d.Type, known)
	return known
}
