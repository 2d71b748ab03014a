package emit

import (
	"path/filepath"
	"strings"

	"github.com/nfsbox/nfsbox/cmd/xdrgen/internal/xdrlang"
)

// code prints everything that goes to the file without tests.
func (m *model) code() []byte {
	g := &gen{m: m}
	g.consts()
	for _, d := range m.defs {
		switch {
		case d.alias:
			g.alias(d)
		case d.typ.kind == kEnum:
			g.enum(d)
		default:
			g.structType(d)
			g.appendMethod(d)
			g.decodeMethod(d)
			g.blockMethods(d)
			g.listMethods(d)
			g.bulkMethods(d)
		}
	}
	g.programs()
	return g.Bytes()
}

// gen prints one file.
type gen struct {
	printer
	m       *model
	onError string // what a decoder returns beside the error
	blocks  int    // runs so far in the function being printed
	lengths int    // so far in the function being printed
	loops   int    // around the statement being printed
}

func (g *gen) consts() {
	if len(g.m.spec.Consts) == 0 {
		return
	}
	g.p("// Constants of the specification.")
	g.p("const (")
	for _, c := range g.m.spec.Consts {
		g.comment(c.Doc)
		g.p("%s = %v", goName(c.Name), c.Expr.Val)
	}
	g.p(")\n")
}

// alias prints a type that only renames another, where there is a Go type worth
// the name; numbers and byte slices stay what they are.
func (g *gen) alias(d *def) {
	if d.typ.kind != kFixed && d.typ.def == nil {
		return
	}
	g.doc(g.title(d, "type"), d.doc)
	g.p("type %s = %s\n", d.name, d.typ)
}

func (g *gen) enum(d *def) {
	g.doc(g.title(d, "enum"), d.doc)
	g.p("type %s int32\n", d.name)
	g.p("// The values of %s.", d.name)
	g.p("const (")
	for _, e := range d.members {
		g.comment(e.Doc)
		g.p("%s %s = %v", goName(e.Name), d.name, e.Val)
	}
	g.p(")\n")
	g.p("// String is the name that the specification has for v, or its number.")
	g.p("func (v %s) String() string {", d.name)
	g.p("switch v {")
	for _, e := range d.members {
		g.p("case %s:\nreturn %q", goName(e.Name), e.Name)
	}
	g.p("}\nreturn \"%s(\" + strconv.Itoa(int(v)) + \")\"\n}\n", d.spec)
	if d.open {
		return
	}
	var names []string
	for _, e := range d.members {
		names = append(names, goName(e.Name))
	}
	g.p("// assigned reports whether v is a value that the specification has.")
	g.p("func (v %s) assigned() bool {\nswitch v {\ncase %s:\nreturn true\n}\nreturn false\n}\n", d.name, strings.Join(names, ",\n"))
}

// title is the first sentence of a type's comment.
func (g *gen) title(d *def, what string) string {
	file := filepath.Base(g.m.spec.File)
	switch {
	case d.made != "":
		return d.name + " is " + d.made + "."
	case d.name == d.spec && strings.IndexByte("aeio", what[0]) >= 0:
		return d.name + " is an " + what + " of " + file + "."
	case d.name == d.spec:
		return d.name + " is a " + what + " of " + file + "."
	}
	return d.name + " is the " + what + " " + d.spec + " of " + file + "."
}

func (g *gen) structType(d *def) {
	switch d.typ.kind {
	case kArray:
		g.doc(g.title(d, "array"), d.doc)
		g.p("type %s [%d]%s\n", d.name, d.typ.n, d.typ.elem)
		return
	case kSlice:
		g.doc(g.title(d, "array"), d.doc)
		g.p("type %s []%s%s\n", d.name, d.typ.elem, bound(&typ{kind: kSlice, bound: d.typ.bound}))
		return
	case kList:
		g.doc(g.title(d, "linked list"), d.doc)
		g.p("type %s []%s\n", d.name, d.typ.elem)
		return
	case kUnion:
		g.doc(g.title(d, "union")+" "+d.fields[0].name+" selects\n"+
			"// which of the other fields travels; decoding leaves the others as they are.", d.doc)
	default:
		what := "struct"
		if d.node {
			what = "list element"
		}
		g.doc(g.title(d, what), d.doc)
	}
	g.p("type %s struct {", d.name)
	for _, f := range d.fields {
		g.comment(f.doc)
		g.p("%s %s%s", f.name, f.typ, bound(f.typ))
	}
	if d.hasOwnBulk() {
		g.p("\nbulkLen int // what DecodeHead announced, for DecodeTail")
	}
	g.p("}\n")
}

func bound(t *typ) string {
	if (t.kind != kBytes && t.kind != kSlice) || t.name != "" || t.bound == xdrlang.Unbounded {
		return ""
	}
	return " // at most " + xdrlang.Value{Abs: uint64(t.bound)}.String()
}
