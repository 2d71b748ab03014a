package xdrlang

// program parses an RPC program definition (RFC 5531, section 12).
func (p *parser) program() *Error {
	doc := p.tok.doc
	p.advance()
	t, err := p.name("the name of a program")
	if err != nil {
		return err
	}
	prog := &Program{Pos: t.pos, Doc: doc, Name: t.text}
	if err := p.expect('{', `"{"`); err != nil {
		return err
	}
	for !p.take('}') {
		v, err := p.version()
		if err != nil {
			return err
		}
		prog.Versions = append(prog.Versions, v)
	}
	if len(prog.Versions) == 0 {
		return Errorf(t.pos, "program %s has no version", t.text)
	}
	if prog.Number, err = p.assigned("the number of the program"); err != nil {
		return err
	}
	p.spec.Programs = append(p.spec.Programs, prog)
	return nil
}

// assigned parses "= number".
func (p *parser) assigned(what string) (*Expr, *Error) {
	if err := p.expect('=', `"=" and `+what); err != nil {
		return nil, err
	}
	return p.value()
}

func (p *parser) version() (*Version, *Error) {
	doc := p.tok.doc
	if !p.keyword("version") {
		return nil, p.expected(`"version" or "}"`)
	}
	t, err := p.name("the name of a version")
	if err != nil {
		return nil, err
	}
	v := &Version{Pos: t.pos, Doc: doc, Name: t.text}
	if err := p.expect('{', `"{"`); err != nil {
		return nil, err
	}
	for !p.take('}') {
		proc, err := p.procedure()
		if err != nil {
			return nil, err
		}
		v.Procs = append(v.Procs, proc)
	}
	if v.Number, err = p.assigned("the number of the version"); err != nil {
		return nil, err
	}
	return v, p.expect(';', `";" behind the version`)
}

func (p *parser) procedure() (*Proc, *Error) {
	doc := p.tok.doc
	result, err := p.operand("the result of a procedure")
	if err != nil {
		return nil, err
	}
	t, err := p.name("the name of a procedure")
	if err != nil {
		return nil, err
	}
	proc := &Proc{Pos: t.pos, Doc: doc, Name: t.text, Result: result}
	if proc.Args, err = p.arguments(); err != nil {
		return nil, err
	}
	if proc.Number, err = p.assigned("the number of the procedure"); err != nil {
		return nil, err
	}
	return proc, p.expect(';', `";" behind the procedure`)
}

func (p *parser) arguments() ([]*Decl, *Error) {
	if err := p.expect('(', `"("`); err != nil {
		return nil, err
	}
	if p.take(')') {
		return nil, nil
	}
	var args []*Decl
	for {
		d, err := p.operand("an argument")
		if err != nil {
			return nil, err
		}
		args = append(args, d)
		if p.take(')') {
			break
		}
		if err := p.expect(',', `"," or ")"`); err != nil {
			return nil, err
		}
	}
	if len(args) == 1 && args[0].Type.Kind == Void {
		return nil, nil
	}
	for _, d := range args {
		if d.Type.Kind == Void {
			return nil, Errorf(d.Pos, "void stands alone or not at all")
		}
	}
	return args, nil
}

// operand parses a type where there is no name: an argument or a result. A bare
// string is an unbounded one, as in RFC 1833; "string<>" says the same.
func (p *parser) operand(what string) (*Decl, *Error) {
	d := &Decl{Pos: p.tok.pos}
	var err *Error
	if d.Type, err = p.typeSpecifier(); err != nil {
		return nil, err
	}
	switch d.Type.Kind {
	case Opaque:
		return nil, Errorf(d.Pos, "%s cannot be an opaque without a name; define a type for it", what)
	case EnumKind, StructKind, UnionKind:
		return nil, Errorf(d.Pos, "%s cannot be defined in place; define a type for it", what)
	case String:
		d.Shape = VarArray
		if p.tok.kind == '<' {
			return d, p.dimension(d)
		}
	default:
		if p.take('*') {
			d.Shape = Optional
		}
	}
	return d, nil
}
