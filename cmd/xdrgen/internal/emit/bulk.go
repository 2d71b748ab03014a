package emit

// hasOwnBulk reports whether the bulk opaque is a field of d itself.
func (d *def) hasOwnBulk() bool { return d.bulk >= 0 && d.fields[d.bulk].typ.kind == kBytes }

// bulkMethods prints the methods of xdr.BulkArgs and xdr.BulkResult.
func (g *gen) bulkMethods(d *def) {
	if d.bulk < 0 || d.alias {
		return
	}
	g.p("var (\n_ xdr.BulkArgs = (*%s)(nil)\n_ xdr.BulkResult = (*%s)(nil)\n)\n", d.name, d.name)
	g.bulkMethod(d, "AppendHead appends what stands before the bulk data, its length included; see [xdr.BulkArgs].",
		"AppendHead(b []byte) ([]byte, error)", g.appendHead)
	g.bulkMethod(d, "Bulk is the bulk data, nil where there is none; see [xdr.BulkArgs].", "Bulk() []byte", g.bulkData)
	g.bulkMethod(d, "AppendTail appends what stands behind the bulk data, its padding included; see [xdr.BulkArgs].",
		"AppendTail(b []byte) ([]byte, error)", g.appendTail)
	g.bulkMethod(d, "DecodeHead consumes what stands before the bulk data; see [xdr.BulkResult].",
		"DecodeHead(d *xdr.Decoder) (dst []byte, n int, err error)", g.decodeHead)
	g.bulkMethod(d, "DecodeTail consumes what stands behind the bulk data; see [xdr.BulkResult].",
		"DecodeTail(d *xdr.Decoder) error", g.decodeTail)
}

func (g *gen) bulkMethod(d *def, doc, signature string, body func(*def)) {
	g.blocks, g.lengths = 0, 0
	g.p("// %s", doc)
	g.p("func (v *%s) %s {", d.name, signature)
	body(d)
	g.p("}\n")
}

func (d *def) bulkArm() *arm {
	for _, a := range d.arms {
		if a.field == d.fields[d.bulk] {
			return a
		}
	}
	return nil
}

// bulkSwitch prints yes for the case that v has bulk data and no for the case
// that it has not: a struct always has it, a union has it in one arm.
func (g *gen) bulkSwitch(d *def, yes, no string) {
	if d.typ.kind != kUnion {
		g.p("%s", yes)
		return
	}
	cases := d.bulkArm().cases
	if len(cases) == 0 { // the default arm: the others say what it is not
		for _, a := range d.arms {
			cases = append(cases, a.cases...)
		}
		yes, no = no, yes
	}
	g.p("switch v.%s {\ncase %s:\n%s\n}\n%s", d.fields[0].name, join(cases), yes, no)
}

// appendHead prints the body of AppendHead. In a struct, what stands before the
// bulk data is the other fields; in a union it is the discriminant.
func (g *gen) appendHead(d *def) {
	if d.typ.kind == kUnion {
		g.appendUnionHead(d)
		return
	}
	f := d.fields[d.bulk]
	before := flatten(d.fields[:d.bulk], "v")
	for _, it := range before {
		if bounded(it.t) {
			g.checkLen(it, "b")
		}
	}
	if d.hasOwnBulk() {
		g.checkLen(item{t: f.typ, expr: "v." + f.name, what: f.spec}, "b")
		g.encodeChecked(append(before, item{t: &typ{kind: kUint32}, expr: "uint32(len(v." + f.name + "))"}))
		g.p("return b, nil")
		return
	}
	g.p("head := b")
	g.encodeChecked(before)
	g.p("out, err := v.%s.AppendHead(b)", f.name)
	g.p("if err != nil {\nreturn head, err\n}\nreturn out, nil")
}

func (g *gen) appendUnionHead(d *def) {
	disc := item{t: d.fields[0].typ, expr: "v." + d.fields[0].name}
	yes := &gen{m: g.m}
	yes.p("head := b")
	yes.appendScalar(disc)
	yes.p("out, err := v.%s.AppendHead(b)", d.fields[d.bulk].name)
	yes.p("if err != nil {\nreturn head, err\n}\nreturn out, nil")
	if d.hasOwnBulk() {
		f := d.fields[d.bulk]
		yes = &gen{m: g.m}
		yes.checkLen(item{t: f.typ, expr: "v." + f.name, what: f.spec}, "b")
		yes.appendScalar(disc)
		yes.p("return xdr.AppendUint32(b, uint32(len(v.%s))), nil", f.name)
	}
	g.bulkSwitch(d, yes.String(), "return v.AppendXDR(b)")
}

func (g *gen) bulkData(d *def) {
	f := d.fields[d.bulk]
	data := "return v." + f.name
	if !d.hasOwnBulk() {
		data += ".Bulk()"
	}
	g.bulkSwitch(d, data, "return nil")
}

func (g *gen) appendTail(d *def) {
	f := d.fields[d.bulk]
	tail := "return v." + f.name + ".AppendTail(b)"
	if d.hasOwnBulk() {
		tail = "return xdr.AppendPad(b, len(v." + f.name + ")), nil"
	}
	g.bulkSwitch(d, tail, "return b, nil")
}

// decodeHead prints the body of DecodeHead. The length is remembered beside the
// field and not in it: a call that is sent again finds the caller's buffer as
// it was.
func (g *gen) decodeHead(d *def) {
	f := d.fields[d.bulk]
	yes := &gen{m: g.m, onError: "nil, 0, "}
	if d.typ.kind == kStruct {
		yes.decode(flatten(d.fields[:d.bulk], "v"))
	}
	if d.hasOwnBulk() {
		yes.p("dst, err = d.BulkLen(%q, %d, v.%s)", f.spec, f.typ.bound, f.name)
		yes.p("v.bulkLen = len(dst)\nreturn dst, len(dst), err")
	} else {
		yes.p("return v.%s.DecodeHead(d)", f.name)
	}
	if d.typ.kind == kStruct {
		g.p("%s", yes.String())
		return
	}
	// Another arm is decoded from the start by the ordinary decoder.
	g.p("all := *d")
	disc := d.fields[0]
	g.decode([]item{{t: disc.typ, expr: "v." + disc.name, what: disc.spec}})
	g.p("if d.Err() != nil {\nreturn nil, 0, d.Err()\n}")
	g.bulkSwitch(d, yes.String(), "*d = all\nreturn nil, 0, v.DecodeXDR(d)")
}

func (g *gen) decodeTail(d *def) {
	f := d.fields[d.bulk]
	tail := "return v." + f.name + ".DecodeTail(d)"
	if d.hasOwnBulk() {
		tail = "v." + f.name + " = v." + f.name + "[:min(v.bulkLen, len(v." + f.name + "))]\nv.bulkLen = 0\nreturn d.Err()"
	}
	g.bulkSwitch(d, tail, "return d.Err()")
}
