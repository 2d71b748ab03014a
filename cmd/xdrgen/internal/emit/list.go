package emit

// listMethods prints Next and AppendNext of a list's node, with which a list
// is taken or made one element at a time.
func (g *gen) listMethods(d *def) {
	if !d.node {
		return
	}
	g.p("// Next decodes the next element of a list into v. It is false at the end of the")
	g.p("// list, which it consumes, and on an error, which d.Err then returns.")
	g.p("func (v *%s) Next(d *xdr.Decoder) bool { return d.Bool() && v.DecodeXDR(d) == nil }\n", d.name)
	g.p("// AppendNext appends v as the next element of a list; xdr.AppendBool(b, false)")
	g.p("// ends the list.")
	g.p("func (v *%s) AppendNext(b []byte) ([]byte, error) {", d.name)
	g.blocks, g.lengths = 0, 0
	follows := item{t: &typ{kind: kUint32}, expr: "1"}
	g.encodeAll(append([]item{follows}, flatten(d.fields, "v")...))
	g.p("return b, nil\n}\n")
}
