package emit

func (g *gen) programs() {
	for _, p := range g.m.spec.Programs {
		g.doc(goName(p.Name)+" is the number of the program "+p.Name+".", p.Doc)
		g.p("const %s = %v\n", goName(p.Name), p.Number.Val)
	}
	for _, v := range g.m.progs {
		g.descriptor(v)
		g.procedures(v)
	}
}

func (g *gen) descriptor(v *program) {
	g.doc(v.name+" describes version "+v.version.String()+" of "+v.program.Name+". It is never changed.", v.doc)
	g.p("var %s = xdr.Program{", v.name)
	g.p("Name: %q,\nNumber: %v,\nVersion: %v,", v.spec, v.program.Number.Val, v.version)
	g.p("Procs: []xdr.Proc{")
	for _, q := range v.procs {
		bulk := ""
		if q.args != nil && q.args.hasBulk() {
			bulk += ", BulkArgs: true"
		}
		if q.result != nil && q.result.hasBulk() {
			bulk += ", BulkResult: true"
		}
		once := ", Repeatable: true"
		if !q.repeatable {
			once = ""
		}
		g.p("{Name: %q, Program: %v, Version: %v, Number: %v%s%s},",
			q.spec, v.program.Number.Val, v.version, q.number, once, bulk)
	}
	g.p("},\n}\n")
}

func (g *gen) procedures(v *program) {
	if len(v.procs) == 0 {
		return
	}
	g.p("// The procedures of %s, each with its arguments and results. They point into", v.name)
	g.p("// %s.Procs and are never changed.", v.name)
	g.p("var (")
	for i, q := range v.procs {
		g.comment(q.doc)
		g.p("%s = &%s.Procs[%d] // %s -> %s", q.name, v.name, i, operandName(q.args), operandName(q.result))
	}
	g.p(")\n")
}

func operandName(t *typ) string {
	if t == nil {
		return "void"
	}
	return t.String()
}
