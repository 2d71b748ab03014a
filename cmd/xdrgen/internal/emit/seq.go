package emit

import "fmt"

// item is one step of an encoder or decoder: a value and where it is.
type item struct {
	t    *typ
	expr string // the value, in Go
	what string // the same for messages, as the specification has it

	length string // of a slice taken apart by split: the variable with its length
	isLen  bool   // this is the length, as a kUint32; else it is the body
	isArm  bool   // the arm of a union whose discriminant is the item before
}

// flattenLimit is how many items a struct may have and still be taken apart
// where it is held. Above it the struct's own methods are called: the code of
// large structs would be there once for every holder.
const flattenLimit = 8

// flatten takes fields apart into items, nested small structs included.
func flatten(fields []*field, prefix string) []item {
	var out []item
	for _, f := range fields {
		it := item{t: f.typ, expr: prefix + "." + f.name, what: f.spec}
		if leaves(f.typ, flattenLimit) <= flattenLimit && f.typ.kind == kStruct {
			out = append(out, flatten(f.typ.def.fields, it.expr)...)
			continue
		}
		out = append(out, it)
	}
	return out
}

// leaves counts the items that t comes apart into, up to just above limit. A
// list's node and a recursive type do not come apart.
func leaves(t *typ, limit int) int {
	if t.kind != kStruct {
		return 1
	}
	if t.def.node || t.def.recursive {
		return limit + 1
	}
	n := 0
	for _, f := range t.def.fields {
		if n += leaves(f.typ, limit-n); n > limit {
			break
		}
	}
	return n
}

// split takes slices that follow something of fixed size apart, so that their
// length is the last item of the run before them.
func (g *gen) split(items []item) []item {
	var out []item
	for i, it := range items {
		if i == 0 || !bounded(it.t) || items[i-1].t.wire() < 0 {
			out = append(out, it)
			continue
		}
		it.length = g.lengthVar()
		out = append(out, item{
			t: &typ{kind: kUint32}, expr: "uint32(len(" + it.expr + "))", length: it.length, isLen: true,
		}, it)
	}
	return out
}

func (g *gen) lengthVar() string {
	if g.lengths++; g.lengths > 1 {
		return fmt.Sprintf("length%d", g.lengths)
	}
	return "length"
}

// expand takes the value of one item apart as flatten does for a field.
func expand(it item) []item {
	if it.t.kind == kStruct && leaves(it.t, flattenLimit) <= flattenLimit {
		return flatten(it.t.def.fields, it.expr)
	}
	return []item{it}
}

// run is how many items from the first have a fixed size, and the size of them
// together.
func run(items []item) (n, size int) {
	for _, it := range items {
		w := it.t.wire()
		if w < 0 {
			break
		}
		n++
		size += w
	}
	return n, size
}

// span is a constant stretch of the slice or array pointer p.
func span(p string, off, n int) string {
	return fmt.Sprintf("%s[%d:%d]", p, off, off+n)
}

func (g *gen) blockVar() string {
	if g.blocks++; g.blocks > 1 {
		return fmt.Sprintf("p%d", g.blocks)
	}
	return "p"
}

// index names the variable of a new loop. The depth of loops is that of array
// types without a name in one field, which the language keeps at one or two.
func (g *gen) index() string {
	g.loops++
	return "ijklmnopqrstuvwxyz"[g.loops-1 : g.loops]
}

func (g *gen) blockMethods(d *def) {
	size := d.typ.wire()
	if d.typ.kind != kStruct || size < 0 {
		return
	}
	dec := ""
	if d.typ.mayFail() {
		dec = "d *xdr.Decoder, "
	}
	g.p("// getBlock decodes the %d bytes that %s always takes.", size, d.spec)
	g.p("func (v *%s) getBlock(%sp *[%d]byte) {", d.name, dec, size)
	off := 0
	for _, it := range flatten(d.fields, "v") {
		g.load(it, "p", off)
		off += it.t.wire()
	}
	g.p("}\n")
	g.p("// putBlock encodes into the %d bytes that %s always takes.", size, d.spec)
	g.p("func (v *%s) putBlock(p *[%d]byte) {", d.name, size)
	off = 0
	for _, it := range flatten(d.fields, "v") {
		g.store(it, "p", off)
		off += it.t.wire()
	}
	g.p("}\n")
}

// load prints the decoding of a value of fixed size from p at off.
func (g *gen) load(it item, p string, off int) {
	n := it.t.wire()
	s := span(p, off, n)
	if it.isLen {
		g.p("%s := binary.BigEndian.Uint32(%s)", it.length, s)
		return
	}
	switch it.t.kind {
	case kInt32:
		g.p("%s = int32(binary.BigEndian.Uint32(%s))", it.expr, s)
	case kEnum:
		g.p("%s = %s(binary.BigEndian.Uint32(%s))", it.expr, it.t, s)
		g.checkEnum(it)
	case kUint32:
		g.p("%s = binary.BigEndian.Uint32(%s)", it.expr, s)
	case kInt64:
		g.p("%s = int64(binary.BigEndian.Uint64(%s))", it.expr, s)
	case kUint64:
		g.p("%s = binary.BigEndian.Uint64(%s)", it.expr, s)
	case kFloat32:
		g.p("%s = math.Float32frombits(binary.BigEndian.Uint32(%s))", it.expr, s)
	case kFloat64:
		g.p("%s = math.Float64frombits(binary.BigEndian.Uint64(%s))", it.expr, s)
	case kBool:
		g.p("%s = d.BoolOf(binary.BigEndian.Uint32(%s))", it.expr, s)
	case kFixed:
		g.p("%s = [%d]byte(%s)", it.expr, it.t.n, span(p, off, it.t.n))
	case kStruct:
		dec := ""
		if it.t.mayFail() {
			dec = "d, "
		}
		g.p("%s.getBlock(%s(*[%d]byte)(%s))", it.expr, dec, n, s)
	case kArray:
		g.elements(it, p, off, g.load)
	}
}

func (g *gen) store(it item, p string, off int) {
	n := it.t.wire()
	s := span(p, off, n)
	switch it.t.kind {
	case kInt32, kEnum:
		g.p("binary.BigEndian.PutUint32(%s, uint32(%s))", s, it.expr)
	case kUint32:
		g.p("binary.BigEndian.PutUint32(%s, %s)", s, it.expr)
	case kInt64:
		g.p("binary.BigEndian.PutUint64(%s, uint64(%s))", s, it.expr)
	case kUint64:
		g.p("binary.BigEndian.PutUint64(%s, %s)", s, it.expr)
	case kFloat32:
		g.p("binary.BigEndian.PutUint32(%s, math.Float32bits(%s))", s, it.expr)
	case kFloat64:
		g.p("binary.BigEndian.PutUint64(%s, math.Float64bits(%s))", s, it.expr)
	case kBool:
		g.p("binary.BigEndian.PutUint32(%s, xdr.BoolValue(%s))", s, it.expr)
	case kFixed:
		for i := it.t.n; i < n; i++ {
			g.p("%s[%d] = 0", p, off+i)
		}
		g.p("*(*[%d]byte)(%s) = %s", it.t.n, span(p, off, it.t.n), it.expr)
	case kStruct:
		g.p("%s.putBlock((*[%d]byte)(%s))", it.expr, n, s)
	case kArray:
		g.elements(it, p, off, g.store)
	}
}

// elements prints a loop that takes one element of a fixed array after the
// other with step.
func (g *gen) elements(it item, p string, off int, step func(item, string, int)) {
	i := g.index()
	q := "p" + i
	size := it.t.elem.wire()
	start := fmt.Sprintf("%d*%s", size, i)
	if off > 0 {
		start = fmt.Sprintf("%d+%s", off, start)
	}
	g.p("for %s := range %s {", i, it.expr)
	g.p("%s := (*[%d]byte)(%s[%s:])", q, size, p, start)
	off = 0
	for _, e := range expand(item{t: it.t.elem, expr: it.expr + "[" + i + "]", what: it.what}) {
		step(e, q, off)
		off += e.t.wire()
	}
	g.p("}")
	g.loops--
}
