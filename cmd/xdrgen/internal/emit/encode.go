package emit

import "slices"

func (g *gen) appendMethod(d *def) {
	g.blocks, g.lengths = 0, 0
	g.p("// AppendXDR appends the encoding of v to b; see [xdr.Appender].")
	g.p("func (v *%s) AppendXDR(b []byte) ([]byte, error) {", d.name)
	switch d.typ.kind {
	case kStruct:
		if d.typ.wire() >= 0 {
			g.p("b = xdr.Extend(b, %d)", d.typ.wire())
			g.p("v.putBlock((*[%d]byte)(b[len(b)-%d:]))", d.typ.wire(), d.typ.wire())
		} else {
			g.encodeAll(flatten(d.fields, "v"))
		}
	case kUnion:
		g.encodeUnion(d)
	default:
		anonymous := *d.typ
		anonymous.def = nil
		g.encodeAll([]item{{t: &anonymous, expr: "(*v)", what: d.spec}})
	}
	if d.typ.kind != kUnion {
		g.p("return b, nil")
	}
	g.p("}\n")
}

// encodeAll prints the encoding of items as the body of a function: first the
// checks of bounds, while b is as it was, then the rest.
func (g *gen) encodeAll(items []item) {
	for _, it := range items {
		if bounded(it.t) {
			g.checkLen(it, "b")
		}
	}
	g.encodeChecked(items)
}

// encodeChecked prints the encoding of items whose own bounds hold.
func (g *gen) encodeChecked(items []item) {
	for i, it := range items {
		if canFail(it.t, true) {
			base := "b"
			if i > 0 || it.t.kind != kStruct && it.t.kind != kUnion {
				base = "base"
				g.p("base := b")
			}
			g.p("var err error")
			g.encode(items, base)
			return
		}
	}
	g.encode(items, "b")
}

// bounded reports whether t is a slice that the holder encodes.
func bounded(t *typ) bool {
	return !t.methods() && (t.kind == kBytes || t.kind == kSlice)
}

// canFail reports whether encoding t may fail; with checked set, when its own
// length is known to be within bounds.
func canFail(t *typ, checked bool) bool {
	switch {
	case t.wire() >= 0:
		return false
	case t.methods():
		return true
	case t.kind == kBytes:
		return !checked
	}
	return canFail(t.elem, false)
}

func (g *gen) checkLen(it item, base string) {
	g.p("if err := xdr.CheckLen(%q, len(%s), %d); err != nil {\nreturn %s, err\n}", it.what, it.expr, it.t.bound, base)
}

// encode prints the encoding of items; on an error the function returns base.
func (g *gen) encode(items []item, base string) {
	items = g.split(items)
	for len(items) > 0 {
		n, size := run(items)
		switch {
		case n == 0:
			g.encodeOne(items[0], base)
			n = 1
		case n == 1 && g.appendScalar(items[0]):
		default:
			p := g.blockVar()
			g.p("b = xdr.Extend(b, %d)", size)
			g.p("%s := (*[%d]byte)(b[len(b)-%d:])", p, size, size)
			off := 0
			for _, it := range items[:n] {
				g.store(it, p, off)
				off += it.t.wire()
			}
		}
		items = items[n:]
	}
}

// appendScalar prints the encoding of a single base type; it reports whether
// it is one.
func (g *gen) appendScalar(it item) bool {
	s, ok := scalars[it.t.kind]
	if !ok {
		return false
	}
	expr := it.expr
	if it.t.kind == kEnum {
		expr = "int32(" + expr + ")"
	}
	g.p("b = xdr.Append%s(b, %s)", s.method, expr)
	return true
}

// encodeOne prints the encoding of a value whose size varies.
func (g *gen) encodeOne(it item, base string) {
	switch t := it.t; {
	case t.methods():
		g.p("if b, err = %s.AppendXDR(b); err != nil {\nreturn %s, err\n}", it.expr, base)
	case t.kind == kBytes && it.length != "":
		g.p("b = xdr.AppendFixed(b, %s)", it.expr)
	case t.kind == kBytes:
		g.p("b = xdr.AppendOpaque(b, %s)", it.expr)
	case t.kind == kSlice:
		if it.length == "" {
			g.p("b = xdr.AppendUint32(b, uint32(len(%s)))", it.expr)
		}
		g.encodeEach(it, base)
	case t.kind == kArray:
		g.encodeEach(it, base)
	case t.kind == kList:
		g.encodeList(it, base)
	case t.kind == kPtr:
		g.p("b = xdr.AppendBool(b, %s != nil)", it.expr)
		g.p("if %s != nil {", it.expr)
		g.encodeElem(item{t: t.elem, expr: pointee(it), what: it.what}, base)
		g.p("}")
	}
}

// pointee is what a pointer points to, as Go writes it: method calls and fields
// need no star.
func pointee(it item) string {
	if it.t.elem.methods() {
		return it.expr
	}
	return "(*" + it.expr + ")"
}

// encodeEach prints a loop over the elements of a slice or array. Elements of
// fixed size are one run, however many there are.
func (g *gen) encodeEach(it item, base string) {
	if size := it.t.elem.wire(); size >= 0 {
		p := g.blockVar()
		g.p("b = xdr.Extend(b, %d*len(%s))", size, it.expr)
		g.p("%s := b[len(b)-%d*len(%s):]", p, size, it.expr)
		g.elements(it, p, 0, g.store)
		return
	}
	i := g.index()
	g.p("for %s := range %s {", i, it.expr)
	g.encodeElem(item{t: it.t.elem, expr: it.expr + "[" + i + "]", what: it.what}, base)
	g.p("}")
	g.loops--
}

// encodeList prints a linked list: each element is announced, and so is the end.
func (g *gen) encodeList(it item, base string) {
	i := g.index()
	g.p("for %s := range %s {", i, it.expr)
	g.p("if b, err = %s[%s].AppendNext(b); err != nil {\nreturn %s, err\n}", it.expr, i, base)
	g.p("}")
	g.p("b = xdr.AppendBool(b, false)")
	g.loops--
}

// encodeElem prints the encoding of one element, the checks of its bounds
// included.
func (g *gen) encodeElem(it item, base string) {
	items := expand(it)
	for _, e := range items {
		if bounded(e.t) {
			g.p("if err = xdr.CheckLen(%q, len(%s), %d); err != nil {\nreturn %s, err\n}", e.what, e.expr, e.t.bound, base)
		}
	}
	g.encode(items, base)
}

// encodeUnion prints the body of AppendXDR of a union: the discriminant and the
// arm are one sequence, so that a fixed arm is one run with it.
func (g *gen) encodeUnion(d *def) {
	body := func(items []item) {
		g.encodeAll(items)
		g.p("return b, nil")
	}
	const fail = "return b, &xdr.ValueError{What: %q, Value: %s}"
	if d.fields[0].typ.kind == kBool {
		g.eachBool(d, body, fail, "}")
		return
	}
	g.eachArm(d, body, fail)
}

// armItems are the items of a union with the arm a: first the discriminant. An
// arm of fixed size comes apart, for it makes a run with the discriminant, and so
// does a struct around a single field; any other has methods, which are called.
func (d *def) armItems(a *arm) []item {
	disc := d.fields[0]
	items := []item{{t: disc.typ, expr: "v." + disc.name, what: disc.spec}}
	switch f := a.field; {
	case f == nil:
		return items
	case f.typ.wire() < 0 && leaves(f.typ, 1) > 1:
		return append(items, item{t: f.typ, expr: "v." + f.name, what: f.spec})
	default:
		return append(items, flatten([]*field{f}, "v")...)
	}
}

// eachArm prints a switch over the discriminant of d. For each arm, body prints
// what is done with its items; for a discriminant without an arm, fail is
// printed, with the union's name and the value filled in.
func (g *gen) eachArm(d *def, body func([]item), fail string) {
	disc := "v." + d.fields[0].name
	g.p("switch %s {", disc)
	for _, a := range d.arms {
		if len(a.cases) == 0 {
			g.p("default:")
		} else {
			g.p("case %s:", join(a.cases))
		}
		g.blocks, g.lengths = 0, 0
		body(d.armItems(a))
	}
	if !d.exhaustive() {
		g.p("default:")
		g.p(fail, d.spec, "int64("+disc+")")
	}
	g.p("}")
}

// eachBool is eachArm for a bool: an if. between closes the block for true and,
// where that does not return, opens the one for false.
func (g *gen) eachBool(d *def, body func([]item), fail, between string) {
	g.p("if v.%s {", d.fields[0].name)
	g.boolArm(d, "true", body, fail)
	g.p("%s", between)
	g.boolArm(d, "false", body, fail)
	if between != "}" {
		g.p("}")
	}
}

func (g *gen) boolArm(d *def, label string, body func([]item), fail string) {
	for _, a := range d.arms {
		if len(a.cases) == 0 || slices.Contains(a.cases, label) {
			g.blocks, g.lengths = 0, 0
			body(d.armItems(a))
			return
		}
	}
	g.p(fail, d.spec, map[string]string{"true": "1", "false": "0"}[label])
}
