package emit

import (
	"strings"

	"github.com/nfsbox/nfsbox/cmd/xdrgen/internal/xdrlang"
)

func join(list []string) string { return strings.Join(list, ", ") }

func (g *gen) decodeMethod(d *def) {
	g.blocks, g.lengths = 0, 0
	g.p("// DecodeXDR consumes the encoding of v from d; see [xdr.Unmarshaler].")
	g.p("func (v *%s) DecodeXDR(d *xdr.Decoder) error {", d.name)
	if d.recursive {
		g.p("if !d.Enter(%q) {\nreturn d.Err()\n}", d.spec)
		g.p("defer d.Leave()")
	}
	switch d.typ.kind {
	case kStruct:
		if d.typ.wire() >= 0 {
			g.decode([]item{{t: d.typ, expr: "v"}})
		} else {
			g.decode(flatten(d.fields, "v"))
		}
	case kUnion:
		g.decodeUnion(d)
	default:
		anonymous := *d.typ
		anonymous.def = nil
		g.decode([]item{{t: &anonymous, expr: "(*v)", what: d.spec}})
	}
	g.p("return d.Err()\n}\n")
}

// decode prints the decoding of items. A single base type sticks to d's error;
// a run returns at once, for there is nothing to load from.
func (g *gen) decode(items []item) {
	items = g.split(unfold(items))
	for len(items) > 0 {
		n, size := run(items)
		switch {
		case n == 0:
			g.decodeOne(items[0])
			n = 1
		case n == 1 && g.takeScalar(items[0]):
		default:
			p := g.blockVar()
			g.p("%s := d.Block(%d)", p, size)
			g.p("if %s == nil {\nreturn %sd.Err()\n}", p, g.onError)
			off := 0
			for _, it := range items[:n] {
				g.load(it, p, off)
				off += it.t.wire()
			}
		}
		items = items[n:]
	}
}

// unfold takes the unions that only say whether something follows apart into
// the bool, which may then be the end of a run, and the arm. They are everywhere
// in NFS, around all attributes and handles, and the call would cost as much as
// the work.
func unfold(items []item) []item {
	var out []item
	for _, it := range items {
		if it.t.kind == kUnion && it.t.def.optional() != nil {
			disc := it.t.def.fields[0]
			out = append(out, item{t: disc.typ, expr: it.expr + "." + disc.name, what: disc.spec})
			it.isArm = true
		}
		out = append(out, it)
	}
	return out
}

// optional is the one field that follows where d is a union of a bool whose FALSE
// is void, else nil.
func (d *def) optional() *field {
	if d.fields[0].typ.kind != kBool || len(d.fields) != 2 || d.recursive || !d.exhaustive() {
		return nil
	}
	for _, a := range d.arms {
		if a.field != nil && len(a.cases) == 1 && a.cases[0] == "true" {
			return a.field
		}
	}
	return nil
}

// takeScalar prints the decoding of a single base type; it reports whether it
// is one.
func (g *gen) takeScalar(it item) bool {
	s, ok := scalars[it.t.kind]
	if !ok {
		return false
	}
	if it.t.kind == kEnum {
		g.p("%s = %s(d.Int32())", it.expr, it.t)
		g.checkEnum(it)
	} else {
		g.p("%s = d.%s()", it.expr, s.method)
	}
	return true
}

// checkEnum prints the refusal of a value that the enum does not have.
func (g *gen) checkEnum(it item) {
	if it.t.closed() {
		g.p("if !%s.assigned() {\nd.Fail(&xdr.ValueError{What: %q, Value: int64(%s)})\n}", it.expr, it.t.def.spec, it.expr)
	}
}

// decodeOne prints the decoding of a value whose size varies.
func (g *gen) decodeOne(it item) {
	switch t := it.t; {
	case it.isArm:
		f := t.def.optional()
		g.p("if %s.%s {", it.expr, t.def.fields[0].name)
		g.decode(expand(item{t: f.typ, expr: it.expr + "." + f.name, what: f.spec}))
		g.p("}")
	case t.methods():
		g.p("if err := %s.DecodeXDR(d); err != nil {\nreturn %serr\n}", it.expr, g.onError)
	case t.kind == kBytes && it.length != "" && t.bound == xdrlang.Unbounded:
		g.p("%s = d.Fixed(int(%s))", it.expr, it.length)
	case t.kind == kBytes && it.length != "":
		g.p("%s = d.Body(%q, %s, %d)", it.expr, it.what, it.length, t.bound)
	case t.kind == kBytes:
		g.p("%s = d.Opaque(%q, %d)", it.expr, it.what, t.bound)
	case t.kind == kSlice:
		length := "d.Uint32()"
		if it.length != "" {
			length = it.length
		}
		g.p("%s = xdr.Resize(%s, d.Elements(%q, %s, %d, %d))", it.expr, it.expr, it.what, length, t.bound, t.elem.min())
		g.decodeEach(it)
	case t.kind == kArray:
		g.decodeEach(it)
	case t.kind == kList:
		i := g.index()
		g.p("%s = %s[:0]", it.expr, it.expr)
		g.p("for %s := 0; d.Bool(); %s++ {", i, i)
		g.p("%s = xdr.Resize(%s, %s+1)", it.expr, it.expr, i)
		g.p("if err := %s[%s].DecodeXDR(d); err != nil {\nreturn %serr\n}", it.expr, i, g.onError)
		g.p("}")
		g.loops--
	case t.kind == kPtr:
		g.p("%s = nil", it.expr)
		g.p("if d.Bool() {")
		g.p("%s = new(%s)", it.expr, t.elem)
		g.decode(expand(item{t: t.elem, expr: pointee(it), what: it.what}))
		g.p("}")
	}
}

// decodeEach prints a loop over the elements of a slice or array, whose length
// is known to fit what is left of the record.
func (g *gen) decodeEach(it item) {
	if size := it.t.elem.wire(); size >= 0 {
		p := g.blockVar()
		g.p("%s := d.Block(%d*len(%s))", p, size, it.expr)
		g.p("if %s == nil {\nreturn %sd.Err()\n}", p, g.onError)
		g.elements(it, p, 0, g.load)
		return
	}
	i := g.index()
	g.p("for %s := range %s {", i, it.expr)
	g.decode(expand(item{t: it.t.elem, expr: it.expr + "[" + i + "]", what: it.what}))
	g.p("}")
	g.loops--
}

func (g *gen) decodeUnion(d *def) {
	disc := d.fields[0]
	if d.optional() != nil {
		g.decode([]item{{t: d.typ, expr: "v", what: disc.spec}})
		return
	}
	g.decode([]item{{t: disc.typ, expr: "v." + disc.name, what: disc.spec}})
	body := func(items []item) { g.decode(items[1:]) }
	const fail = "d.Fail(&xdr.ValueError{What: %q, Value: %s})"
	if disc.typ.kind == kBool {
		g.eachBool(d, body, fail, "} else {")
		return
	}
	g.eachArm(d, body, fail)
}
